"""The attacks on approvals, prices, margins and names: what happens to each now, and the tests that hold it so."""

from __future__ import annotations

from tests.support.attack import Attack, attack

ON_DEALS: dict[str, tuple[Attack, ...]] = {
    "A kept approval covers no more than was approved": (
        attack(
            "95 % approved on one seat, revised to 190,000 seats",
            "both roles are asked again, with the difference",
            "test_what_was_approved_for_one_seat_is_not_kept_for_190_000",
            "test_one_discounted_seat_does_not_open_the_door_for_a_thousand",
        ),
        attack(
            "the lines removed for which the discount was given",
            "asked again",
            "test_an_approval_is_not_kept_without_the_lines_that_the_discount_was_given_for",
        ),
        attack(
            "12 months approved, revised to 120", "asked again", "test_an_approval_of_12_months_is_not_kept_for_120"
        ),
        attack(
            "a side letter in the notes of the next version",
            "asked again",
            "test_an_approval_is_not_kept_for_a_side_letter_in_the_notes",
        ),
        attack("a later validity", "asked again", "test_an_approval_is_not_kept_for_a_later_validity"),
        attack(
            "keeps of keeps, each a little more",
            "measured by what a person saw, not by what was kept since",
            "test_what_got_no_worse_is_kept_and_what_did_is_asked_again",
        ),
        attack(
            "any mix of changes by which a customer gets more",
            "a count of every unit and month decides the same",
            "test_a_version_gives_more_exactly_when_a_count_of_every_unit_and_month_says_so",
            "test_no_path_of_a_split_deal_gives_a_customer_what_nobody_saw",
            "test_no_path_at_all_of_a_split_deal_gives_a_customer_what_nobody_saw",
        ),
        attack(
            "every order of rates, commitments, free months, custom items and dates",
            "an approval covers the terms it was given for, or ones that give less",
            "test_no_path_of_special_terms_gives_a_customer_what_nobody_saw",
            "test_g07_no_path_of_rates_and_commitments_gives_a_customer_what_nobody_saw",
            "test_no_path_at_all_of_special_terms_gives_a_customer_what_nobody_saw",
        ),
        attack(
            "another product under the number of a removed line",
            "asked again",
            "test_another_product_under_the_number_of_a_removed_line_is_asked_about",
        ),
        attack(
            "keeping where nobody wants it",
            "a setting of the policies switches it off",
            "test_keeping_can_be_switched_off",
        ),
        attack(
            "every order of prices, requests, answers, silence and revisions",
            "nothing is sent without the approvals it needs",
            "test_no_path_reaches_sent_without_the_approvals_that_the_policies_ask_for",
            "test_no_path_at_all_reaches_sent_without_the_approvals_that_the_policies_ask_for",
        ),
    ),
    "What cannot be seen cannot pass": (
        attack(
            "free units on 400 lines instead of one",
            "counted for each product over the quote",
            "test_four_hundred_lines_have_no_more_free_units_than_one",
            "test_no_split_into_lines_makes_free_units_cheaper_or_cost_less",
        ),
        attack(
            "free units without a cost", "their cost is in the margin", "test_free_units_have_their_cost_in_the_margin"
        ),
        attack(
            "six quotes of 99,990 with one deal id, or with none",
            "the second asks the deal desk, the sixth the VP Sales",
            "test_six_quotes_of_99_990_are_one_deal",
        ),
        attack(
            "a deal under several names",
            "the quotes of an account add up",
            "test_deals_under_several_names_add_up_for_their_account",
        ),
        attack(
            "two quotes of a deal sent at the same moment",
            "one waits for the other and sees it",
            "test_two_quotes_of_a_deal_at_the_same_moment_see_each_other",
        ),
        attack(
            "a revision, smaller or of another deal, that waits for approval while the next quote is sent",
            "the largest open version of each quote counts",
            "test_a_revision_that_was_not_sent_does_not_hide_what_was",
            "test_a_revision_that_nobody_decided_in_time_does_not_hide_what_was_sent",
            "test_a_version_that_another_account_has_counts_for_its_deal_whatever_its_revision_says",
        ),
        attack(
            "typed prices kept while the currency becomes another: 100 USD as 100 JPY",
            "refused until each is given in the new currency",
            "test_g03_an_amount_that_was_typed_in_is_not_taken_for_another_currency",
            "test_g04_an_amount_off_the_quote_is_not_taken_for_another_currency",
        ),
        attack(
            "a small percentage of a very large deal",
            "discounts in money have ladders of their own",
            "test_four_percent_of_a_very_large_deal_is_much_money",
        ),
        attack(
            "`40 % rebate, net 180` by an agent: a note, the deal's reference, an attribute, an option of text",
            "legal is asked, unless it is of the clause library",
            "test_a_side_letter_of_an_agent_needs_a_person",
            "test_an_option_that_is_a_text_holds_no_side_letter",
            "test_a_clause_of_the_library_needs_nobody",
            "test_terms_are_found_in_every_spelling",
        ),
        attack(
            "the same text in a person's clone or an agent's change",
            "legal is asked",
            "test_the_clone_that_a_person_makes_of_an_agents_quote_still_needs_legal",
            "test_an_agent_that_changes_a_quote_of_a_person_answers_for_its_text",
        ),
    ),
    "A change of an agreement is no side door": (
        attack(
            "every order of amendments, renewals and cancellations, one after the other and two at once",
            "none holds without the approvals it needs, and each rests on the one before it",
            "test_no_path_changes_an_agreement_without_the_approvals_that_the_policies_ask_for",
            "test_no_path_at_all_changes_an_agreement_without_the_approvals_that_the_policies_ask_for",
        ),
        attack(
            "two changes of one agreement accepted at once",
            "one holds; the other is CONFLICT with what happened, and a call that makes it again",
            "test_a15_of_amendments_accepted_at_once_one_holds_and_the_others_are_made_again_from_it",
            "test_a15_of_amendments_accepted_by_processes_at_once_one_holds",
            "test_a15_of_an_amendment_and_what_ends_or_renews_its_base_one_holds",
            "test_a13_two_renewals_that_share_an_agreement_do_not_both_hold",
        ),
        attack(
            "a price or discount hidden in a swap, another quantity or another term",
            "refused: each change takes its own fields",
            "test_a12_a_price_hidden_in_another_change_is_refused",
        ),
        attack(
            "a thousand more of an item of no catalogue, approved for one",
            "the deal desk is asked again",
            "test_a15_more_of_an_item_of_no_catalogue_goes_to_the_deal_desk_again",
        ),
        attack(
            "more at a price that is kept, after our cost has risen",
            "the margin is by the cost of today",
            "test_a15_the_margin_of_a_change_is_by_what_it_costs_us_today",
        ),
        attack(
            "a credit sliced into several changes, each below a threshold",
            "what changes of an account give back in 90 days adds up, also while it waits",
            "test_a15_a_credit_in_slices_is_added_up",
            "test_a15_a_credit_that_waits_counts_for_the_next_one",
        ),
        attack(
            "a large sale hidden behind an equal credit",
            "what is sold counts for deal and account, whatever is given back",
            "test_a15_what_a_change_sells_counts_though_it_gives_as_much_back",
        ),
        attack(
            "a cancellation dressed up as fewer units, another price or product, to be paid what its terms do not give",
            "finance is asked, with the amount beyond the terms",
            "test_a15_a_change_that_pays_out_what_an_end_would_not_goes_to_finance",
        ),
        attack(
            "a change dated back to the start",
            "finance is asked beyond a month",
            "test_a15_a_change_of_long_ago_goes_to_finance",
        ),
        attack(
            "a renewal or a longer term below the usual uplift, or at it with a discount on the quote",
            "the sales manager is asked",
            "test_a13_prices_go_on_below_the_usual_uplift_only_with_approval",
        ),
    ),
    "A price is true when it goes out": (
        attack(
            "a draft sent after the catalogue changed",
            "refused with the difference and `quote_price`",
            "test_a_draft_is_not_sent_at_a_price_that_the_catalogue_no_longer_has",
            "test_a_monthly_price_that_became_a_yearly_one_is_not_sent_though_the_total_is_the_same",
            "test_a_draft_is_not_sent_at_the_price_of_an_earlier_day",
        ),
        attack(
            "a draft sent after a cost or the policies changed",
            "refused with the roles that are needed now",
            "test_a_draft_is_not_sent_when_todays_cost_needs_an_approval",
            "test_a_draft_is_not_sent_when_todays_policies_need_an_approval",
        ),
        attack(
            "an approved version sent after the catalogue changed",
            "refused",
            "test_what_was_approved_is_not_sent_after_the_catalogue_has_changed_it",
            "test_an_approval_under_earlier_policies_does_not_cover_a_product_that_has_changed",
        ),
        attack(
            "the PDF of a superseded version",
            "stamped so",
            "test_the_pdf_of_a_superseded_version_is_stamped_and_what_was_issued_stays",
        ),
    ),
    "Margins do not leak": (
        attack(
            "which hidden rule asks, and its threshold",
            "only the role is shown",
            "test_an_agent_learns_only_the_role_of_a_hidden_policy",
        ),
        attack(
            "a cost by bisecting the discount, by bundles and by mixes",
            "no two costs of an interval can be distinguished",
            "test_prices_of_a_product_or_a_bundle_with_it_tell_no_two_costs_of_an_interval_apart",
        ),
        attack(
            "a cost by which approvals are kept",
            "they show no more than a price",
            "test_a_kept_approval_tells_no_more_of_a_margin_than_a_price",
            "test_a_hidden_fact_that_looks_the_same_on_the_grid_is_asked_about_if_it_may_be_worse",
        ),
        attack(
            "2,000 calls by one caller, over many quotes and days",
            "changes of hidden verdicts have a budget; no cost is narrowed below the stated interval",
            "test_no_series_of_calls_narrows_a_cost_to_less_than_the_stated_interval",
            "test_a_quote_has_a_budget_of_changes_for_each_caller_over_restarts",
            "test_many_quotes_have_one_budget",
            "test_changes_that_only_a_preview_looks_at_count_as_well",
            "test_the_budget_of_a_day_ends_before_an_adversary_has_found_many_costs",
        ),
    ),
    "Who is who": (
        attack(
            "an owner approves what their agent made, changed or submitted",
            "refused",
            "test_nobody_approves_what_their_own_agent_made_changed_or_submitted",
        ),
        attack(
            "the same person by token and by the company's sign-in",
            "they have one name, however the provider writes it",
            "test_the_same_person_gets_in_however_the_provider_puts_it",
        ),
        attack(
            "a person with two names approves under one what their agent made under the other",
            "refused once the names are known to be one person's",
            "test_nobody_approves_under_another_name_what_their_own_agent_made",
            "test_what_was_made_under_another_name_before_counts_as_made_by_the_person",
            "test_an_invented_name_of_an_approver_opens_nothing",
        ),
        attack(
            "`cpq approvals approve --as X` from a shell",
            "needs the secret of X or of an administrator",
            "test_a_shell_alone_decides_nothing_once_tokens_exist",
        ),
        attack(
            "`cpq console link --user X` from a shell",
            "needs the secret of X or of an administrator",
            "test_a_shell_alone_makes_no_link_once_tokens_exist",
        ),
        attack(
            "`cpq serve --as X` over stdio, and the secret in a file of settings",
            "needs the secret, from the caller",
            "test_over_stdio_a_shell_alone_acts_as_no_person_once_tokens_exist",
            "test_a_file_of_settings_is_no_proof_of_a_person",
        ),
        attack(
            "a role that decides, given from a shell",
            "needs an administrator's secret",
            "test_a_shell_alone_gives_no_role_that_decides_once_an_administrator_exists",
        ),
        attack(
            "an administrator approves their own quote in another's name",
            "refused, and the record names who acted",
            "test_an_administrator_who_made_a_quote_does_not_approve_it_in_anothers_name",
            "test_nobody_approves_what_they_made_in_anothers_name",
        ),
        attack(
            "a decision that waits for a lock while its token is revoked",
            "does not count",
            "test_a_decision_that_waited_while_its_token_was_revoked_does_not_count",
        ),
        attack(
            "the last token revoked, so that the server opens to all",
            "the server stays closed",
            "test_a_server_stays_shut_when_its_last_token_is_revoked",
        ),
        attack(
            "an agent alone takes a quote from draft to accepted",
            "a person, the customer's link or a policy is needed",
            "test_an_agent_alone_does_not_take_a_quote_from_draft_to_accepted",
            "test_no_agent_gets_a_link",
            "test_no_path_of_a_split_deal_gives_a_customer_what_nobody_saw",
        ),
        attack(
            "a customer's link used twice, for another version, or guessed",
            "accepts once, exactly what was sent; guessing is limited",
            "test_accepting_twice_or_at_once_is_done_once",
            "test_a_link_ends_with_the_version_it_is_for",
            "test_guessing_links_without_end_is_limited",
        ),
        attack(
            "a customer's link that was revoked, or is revoked while it is used",
            "as unknown as one that never was",
            "test_a_revoked_link_is_dead_and_another_one_is_not",
            "test_a_link_that_is_revoked_while_the_customer_accepts_it_accepts_nothing",
        ),
        attack(
            "a person signs in by the subject of their provider and decides what their own program made",
            "nobody decides what a program of theirs made",
            "test_the_subject_of_a_provider_is_the_person_behind_a_program_and_decides_nothing_that_it_made",
        ),
        attack(
            "makers who lend roles to choose, silence or replace approvers",
            "refused",
            "test_a_maker_cannot_choose_by_lending_whose_word_is_needed",
            "test_a_maker_cannot_keep_anybody_from_saying_no_by_lending",
            "test_a_maker_cannot_put_a_stand_in_in_place_of_the_approver",
        ),
    ),
}
