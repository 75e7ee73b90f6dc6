"""The attacks that were tried on the product, what happens to each now, and the tests that hold it so."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parent


class Attack(NamedTuple):
    tried: str
    now: str
    tests: tuple[str, ...]


def _attack(tried: str, now: str, *tests: str) -> Attack:
    return Attack(tried, now, tests)


ATTACKS: dict[str, tuple[Attack, ...]] = {
    "A kept approval covers no more than was approved": (
        _attack(
            "95 % approved on one seat, revised to 190,000 seats",
            "both roles are asked again, with the difference",
            "test_what_was_approved_for_one_seat_is_not_kept_for_190_000",
            "test_one_discounted_seat_does_not_open_the_door_for_a_thousand",
        ),
        _attack(
            "the lines removed for which the discount was given",
            "asked again",
            "test_an_approval_is_not_kept_without_the_lines_that_the_discount_was_given_for",
        ),
        _attack(
            "12 months approved, revised to 120", "asked again", "test_an_approval_of_12_months_is_not_kept_for_120"
        ),
        _attack(
            "a side letter in the notes of the next version",
            "asked again",
            "test_an_approval_is_not_kept_for_a_side_letter_in_the_notes",
        ),
        _attack("a later validity", "asked again", "test_an_approval_is_not_kept_for_a_later_validity"),
        _attack(
            "keeps of keeps, each a little more",
            "measured by what a person saw, not by what was kept since",
            "test_what_got_no_worse_is_kept_and_what_did_is_asked_again",
        ),
        _attack(
            "any mix of changes by which a customer gets more",
            "a count of every unit and month decides the same",
            "test_a_version_gives_more_exactly_when_a_count_of_every_unit_and_month_says_so",
            "test_no_path_of_a_split_deal_gives_a_customer_what_nobody_saw",
            "test_no_path_at_all_of_a_split_deal_gives_a_customer_what_nobody_saw",
        ),
        _attack(
            "another product under the number of a removed line",
            "asked again",
            "test_another_product_under_the_number_of_a_removed_line_is_asked_about",
        ),
        _attack(
            "keeping where nobody wants it",
            "a setting of the policies switches it off",
            "test_keeping_can_be_switched_off",
        ),
        _attack(
            "every order of prices, requests, answers, silence and revisions",
            "nothing is sent without the approvals it needs",
            "test_no_path_reaches_sent_without_the_approvals_that_the_policies_ask_for",
            "test_no_path_at_all_reaches_sent_without_the_approvals_that_the_policies_ask_for",
        ),
    ),
    "What cannot be seen cannot pass": (
        _attack(
            "free units on 400 lines instead of one",
            "counted for each product over the quote",
            "test_four_hundred_lines_have_no_more_free_units_than_one",
            "test_no_split_into_lines_makes_free_units_cheaper_or_cost_less",
        ),
        _attack(
            "free units without a cost", "their cost is in the margin", "test_free_units_have_their_cost_in_the_margin"
        ),
        _attack(
            "six quotes of 99,990 with one deal id, or with none",
            "the second asks the deal desk, the sixth the VP Sales",
            "test_six_quotes_of_99_990_are_one_deal",
        ),
        _attack(
            "a deal under several names",
            "the quotes of an account add up",
            "test_deals_under_several_names_add_up_for_their_account",
        ),
        _attack(
            "two quotes of a deal sent at the same moment",
            "one waits for the other and sees it",
            "test_two_quotes_of_a_deal_at_the_same_moment_see_each_other",
        ),
        _attack(
            "a revision, smaller or of another deal, that waits for approval while the next quote is sent",
            "the largest open version of each quote counts",
            "test_a_revision_that_was_not_sent_does_not_hide_what_was",
            "test_a_revision_that_nobody_decided_in_time_does_not_hide_what_was_sent",
        ),
        _attack(
            "a small percentage of a very large deal",
            "discounts in money have ladders of their own",
            "test_four_percent_of_a_very_large_deal_is_much_money",
        ),
        _attack(
            "a note `40 % rebate, net 180` by an agent, on the quote, a line or in an attribute",
            "legal is asked, unless it is of the clause library",
            "test_a_side_letter_of_an_agent_needs_a_person",
            "test_a_clause_of_the_library_needs_nobody",
            "test_terms_are_found_in_every_spelling",
        ),
        _attack(
            "the same text in a person's clone or an agent's change",
            "legal is asked",
            "test_the_clone_that_a_person_makes_of_an_agents_quote_still_needs_legal",
            "test_an_agent_that_changes_a_quote_of_a_person_answers_for_its_text",
        ),
    ),
    "A price is true when it goes out": (
        _attack(
            "a draft sent after the catalogue changed",
            "refused with the difference and `quote_price`",
            "test_a_draft_is_not_sent_at_a_price_that_the_catalogue_no_longer_has",
            "test_a_monthly_price_that_became_a_yearly_one_is_not_sent_though_the_total_is_the_same",
        ),
        _attack(
            "a draft sent after a cost or the policies changed",
            "refused with the roles that are needed now",
            "test_a_draft_is_not_sent_when_todays_cost_needs_an_approval",
            "test_a_draft_is_not_sent_when_todays_policies_need_an_approval",
        ),
        _attack(
            "an approved version sent after the catalogue changed",
            "refused",
            "test_what_was_approved_is_not_sent_after_the_catalogue_has_changed_it",
            "test_an_approval_under_earlier_policies_does_not_cover_a_product_that_has_changed",
        ),
        _attack(
            "the PDF of a superseded version",
            "stamped so",
            "test_the_pdf_of_a_superseded_version_is_stamped_and_what_was_issued_stays",
        ),
    ),
    "Margins do not leak": (
        _attack(
            "which hidden rule asks, and its threshold",
            "only the role is told",
            "test_an_agent_learns_only_the_role_of_a_hidden_policy",
        ),
        _attack(
            "a cost by bisecting the discount, by bundles and by mixes",
            "no two costs of an interval can be told apart",
            "test_prices_of_a_product_or_a_bundle_with_it_tell_no_two_costs_of_an_interval_apart",
        ),
        _attack(
            "a cost by which approvals are kept",
            "they tell no more than a price",
            "test_a_kept_approval_tells_no_more_of_a_margin_than_a_price",
            "test_a_hidden_fact_that_looks_the_same_on_the_grid_is_asked_about_if_it_may_be_worse",
        ),
        _attack(
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
        _attack(
            "an owner approves what their agent made, changed or submitted",
            "refused",
            "test_nobody_approves_what_their_own_agent_made_changed_or_submitted",
        ),
        _attack(
            "the same person by token and by the company's sign-in",
            "they have one name, however the provider writes it",
            "test_the_same_person_gets_in_however_the_provider_puts_it",
        ),
        _attack(
            "`cpq approvals approve --as X` from a shell",
            "needs the secret of X or of an administrator",
            "test_a_shell_alone_decides_nothing_once_tokens_exist",
        ),
        _attack(
            "`cpq console link --user X` from a shell",
            "needs the secret of X or of an administrator",
            "test_a_shell_alone_makes_no_link_once_tokens_exist",
        ),
        _attack(
            "`cpq serve --as X` over stdio, and the secret in a file of settings",
            "needs the secret, from the caller",
            "test_over_stdio_a_shell_alone_acts_as_no_person_once_tokens_exist",
            "test_a_file_of_settings_is_no_proof_of_a_person",
        ),
        _attack(
            "a role that decides, given from a shell",
            "needs an administrator's secret",
            "test_a_shell_alone_gives_no_role_that_decides_once_an_administrator_exists",
        ),
        _attack(
            "an administrator approves their own quote in another's name",
            "refused, and the record names who acted",
            "test_an_administrator_who_made_a_quote_does_not_approve_it_in_anothers_name",
            "test_nobody_approves_what_they_made_in_anothers_name",
        ),
        _attack(
            "a decision that waits for a lock while its token is revoked",
            "does not count",
            "test_a_decision_that_waited_while_its_token_was_revoked_does_not_count",
        ),
        _attack(
            "the last token revoked, so that the server opens to all",
            "the server stays closed",
            "test_a_server_stays_shut_when_its_last_token_is_revoked",
        ),
        _attack(
            "an agent alone takes a quote from draft to accepted",
            "a person, the customer's link or a policy is needed",
            "test_an_agent_alone_does_not_take_a_quote_from_draft_to_accepted",
            "test_no_agent_gets_a_link",
            "test_no_path_of_a_split_deal_gives_a_customer_what_nobody_saw",
        ),
        _attack(
            "a customer's link used twice, for another version, or guessed",
            "accepts once, exactly what was sent; guessing is limited",
            "test_accepting_twice_or_at_once_is_done_once",
            "test_a_link_ends_with_the_version_it_is_for",
            "test_guessing_links_without_end_is_limited",
        ),
        _attack(
            "makers who lend roles to choose, silence or replace approvers",
            "refused",
            "test_a_maker_cannot_choose_by_lending_whose_word_is_needed",
            "test_a_maker_cannot_keep_anybody_from_saying_no_by_lending",
            "test_a_maker_cannot_put_a_stand_in_in_place_of_the_approver",
        ),
    ),
    "Settings come from the operator": (
        _attack(
            "a hostile `.env` in the current folder",
            "not read; the start tells where home, database and policies are",
            "test_a_file_of_the_current_folder_decides_nothing",
            "test_a_server_tells_at_its_start_where_home_database_and_policies_are",
        ),
        _attack(
            "a file of settings that others can write or own",
            "refused",
            "test_a_file_that_others_can_change_is_refused",
            "test_a_file_of_another_user_is_refused",
        ),
        _attack(
            "policies of a hostile folder, 79 % off",
            "with `CPQ_POLICIES_ADOPT=manual` used only after their adoption by hash",
            "test_a_hostile_folder_is_used_only_after_its_adoption",
            "test_only_the_content_with_the_given_hash_is_adopted",
            "test_a_changed_stored_set_is_refused_until_the_folder_is_adopted_again",
        ),
        _attack(
            "home, database and documents read by others on the machine",
            "made for the operator alone, whatever the umask",
            "test_home_database_and_documents_are_for_the_operator_alone",
        ),
    ),
    "Fair shares": (
        _attack(
            "999 sessions of one caller in 12 s",
            "each caller has a share; UNAVAILABLE with a time",
            "test_one_caller_cannot_take_all_sessions",
        ),
        _attack(
            "60 PDF calls of one caller at once",
            "they wait in their share, others are served in turn",
            "test_a_caller_with_many_calls_leaves_a_place_for_others",
            "test_freed_places_go_to_the_callers_in_turn",
            "test_too_many_waiting_calls_are_told_to_come_back",
        ),
        _attack("`tools/list` without end", "limited like calls", "test_a_flood_of_lists_is_limited_like_calls"),
        _attack(
            "clones of a quote with long notes, 95 GB an hour",
            "text of a quote and bytes of a caller and day are limited, and the disk has a watermark",
            "test_q03_more_text_than_a_quote_may_have_names_the_longest_and_the_amount",
            "test_bytes_of_a_day_are_counted_over_processes_and_restarts",
            "test_a_nearly_full_disk_refuses_what_stores_and_reads_go_on",
        ),
        _attack(
            "drafts that nobody touches, without end",
            "they expire by policy and say why",
            "test_only_a_draft_that_nobody_touches_expires_and_says_why",
        ),
        _attack(
            "guards that stand in the way of ordinary callers",
            "twenty ordinary tasks meet no refusal",
            "test_twenty_ordinary_tasks_meet_no_refusal",
        ),
        _attack(
            "1,100 half-sent requests without a token",
            "the oldest make room; each has a deadline",
            "test_a_half_sent_request_is_ended_and_makes_room_for_others",
            "test_a_request_that_never_comes_is_ended",
        ),
        _attack(
            "150 slow POSTs that hold 600 MB",
            "bodies have a deadline and a size",
            "test_a_request_that_never_comes_is_ended",
            "test_a_body_that_comes_in_pieces_is_healed_and_a_huge_one_refused",
        ),
        _attack(
            "`/readyz` without end",
            "one look in 2 s writes; `/healthz` writes nothing",
            "test_a_flood_of_readyz_writes_one_row_and_healthz_none",
        ),
        _attack(
            "a caller who calls without end",
            "told how long to wait",
            "test_q02_a_caller_that_calls_too_often_is_told_how_long_to_wait",
        ),
    ),
    "Doors": (
        _attack(
            "Content-Length with Transfer-Encoding",
            "refused, and the connection is closed",
            "test_a_request_with_two_lengths_is_refused_and_the_connection_closed",
        ),
        _attack(
            "`/metrics` without a token",
            "needs one or loopback once there are tokens",
            "test_metrics_from_another_machine_need_a_token_once_there_are_any",
        ),
        _attack(
            "a formula in a CSV",
            "an apostrophe before it, in every file",
            "test_a_file_runs_no_formula_in_a_spreadsheet",
            "test_a_cell_of_hidden_text_is_shown_and_is_no_formula",
        ),
        _attack(
            "direction overrides and invisible characters",
            "shown by their codes, and left out of documents",
            "test_pages_and_spreadsheets_show_what_a_text_hides",
            "test_a_document_prints_nothing_that_hides_or_turns_text_around",
            "test_q03_sentences_show_what_a_text_hides_and_fields_keep_it",
        ),
        _attack(
            "an OIDC answer of another provider (`iss`)",
            "lets nobody in",
            "test_an_answer_that_another_provider_sent_lets_nobody_in",
        ),
        _attack(
            "a malformed database address with its password",
            "never printed",
            "test_a_database_address_never_shows_its_password",
            "test_an_address_that_cannot_be_parsed_is_refused_in_words",
            "test_an_unreachable_database_is_told_without_its_password",
        ),
        _attack(
            "a file for `quote_verify_pdf` that unpacks without end",
            "searched only so far",
            "test_a_hostile_file_is_searched_only_so_far",
            "test_a_stream_that_inflates_without_end_is_looked_at_only_so_far",
        ),
        _attack(
            "log lines of refused requests without end",
            "counted and not written",
            "test_a_flood_of_lines_is_counted_and_not_written",
        ),
    ),
    "Rows and record agree": (
        _attack(
            "a status set to approved by SQL, then sent",
            "refused as CONFLICT that names the part",
            "test_a_status_set_to_approved_is_not_sent",
        ),
        _attack(
            "forged approvals and votes",
            "nothing is asked, decided or sent",
            "test_a_forged_approval_does_not_let_a_quote_out",
        ),
        _attack(
            "notes, terms, lines or amounts of a sent version changed by SQL",
            "neither accepted nor printed",
            "test_changed_terms_of_a_sent_version_are_neither_accepted_nor_printed",
            "test_a_change_that_was_not_made_by_a_call_stays_visible_after_later_calls",
        ),
        _attack(
            "a document row pointed at a forged file, or the file replaced",
            "refused by `quote_pdf` and `quote_verify_pdf`, and named",
            "test_a_document_row_that_points_at_a_forged_file_is_refused",
            "test_a_changed_file_of_a_document_is_named",
        ),
        _attack(
            "tokens, prices, accounts, stored answers or any other row changed by SQL",
            "`cpq audit verify --state` names each",
            "test_every_forged_row_is_named",
            "test_forged_and_deleted_rows_are_told_apart",
            "test_a_price_is_named_and_stays_forged_after_the_next_import",
            "test_rows_are_compared_with_the_record_and_each_that_differs_is_named",
        ),
        _attack(
            "an entry about a quote removed",
            "the entries about the quote are not complete, and it is said",
            "test_a_removed_entry_is_noticed",
        ),
        _attack(
            "rows and their digests forged together; signatures or states left out; an older state put back",
            "with a key outside the database no call relies on it",
            "test_a_record_forged_together_with_its_rows_is_relied_on_by_no_call",
            "test_a_signature_that_is_not_by_the_key_is_named",
            "test_states_from_before_the_key_are_counted_and_signed_where_the_rows_are_whole",
        ),
        _attack(
            "a key that others can read or replace",
            "refused",
            "test_a_key_that_others_can_read_or_write_is_refused",
        ),
        _attack(
            "the chain cut off or rewritten with all its hashes, and a kept head changed to fit",
            "a head that the key signed shows it",
            "test_a_signed_head_notices_a_chain_that_is_whole_and_not_the_same",
            "test_a_head_that_somebody_changed_is_not_believed",
            "test_a_chain_cut_off_together_with_its_head_does_not_match_a_kept_head",
        ),
        _attack(
            "audit entries changed, sealed again, deleted or truncated with the credentials of a server",
            "PostgreSQL refuses; the role only adds entries",
            "test_the_server_refuses_every_change_of_the_record",
            "test_the_owner_of_the_tables_is_not_taken_for_the_role",
        ),
    ),
    "Faults": (
        _attack(
            "a full disk, an unreadable store, a directory in the way of a PDF",
            "UNAVAILABLE with the operator's next step",
            "test_a_document_that_cannot_be_stored_is_unavailable",
        ),
        _attack(
            "a killed PDF worker",
            "costs a retry, not the call",
            "test_the_death_of_a_worker_costs_a_retry_and_not_the_call",
            "test_a_worker_that_dies_every_time_is_unavailable",
        ),
        _attack(
            "a read-only database file",
            "UNAVAILABLE, `/readyz` says so, and it works again at once",
            "test_a_read_only_database_is_unavailable_and_works_again_at_once",
            "test_a_server_whose_database_cannot_be_written_is_not_ready",
        ),
        _attack(
            "a damaged page of the database",
            "named to the caller, by `/readyz` and by `cpq doctor`",
            "test_a_damaged_page_is_named_to_the_caller_and_by_readyz",
            "test_doctor_fails_on_a_damaged_page",
        ),
        _attack(
            "a damaged or emptied catalogue index",
            "rebuilt by itself or by `cpq repair`",
            "test_a_damaged_word_index_is_mended",
            "test_an_emptied_word_index_is_told_and_mended",
            "test_doctor_and_repair_find_and_mend_an_emptied_word_index",
        ),
        _attack("a lost document file", "`cpq repair` renders it again", "test_repair_renders_a_lost_document_again"),
        _attack(
            "SIGTERM while a PDF is rendered, which left a worker",
            "ends in time and leaves no process",
            "test_sigterm_ends_a_server_that_renders_and_leaves_no_worker",
        ),
        _attack(
            "a start while the policies are broken",
            "the last good set that was stored is used, and it is said",
            "test_a_server_that_starts_with_a_broken_folder_uses_the_last_good_set",
        ),
        _attack(
            "processes killed under load, lost acknowledgements of a commit",
            "nothing is lost, doubled or half written",
            "test_q11_a_process_killed_halfway_leaves_nothing_or_everything",
            "test_q11_what_a_killed_process_had_reported_is_there_and_the_rest_can_be_repeated",
            "test_a_lost_acknowledgement_of_the_commit_does_not_do_the_work_twice",
        ),
    ),
    "What held before": (
        _attack(
            "fifty decisions at once",
            "exactly one holds",
            "test_of_fifty_decisions_at_once_exactly_one_holds",
            "test_of_fifty_decisions_at_once_exactly_one_holds_two_hundred_times",
        ),
        _attack(
            "accept, decline and cancel at once",
            "exactly one holds",
            "test_of_accept_decline_and_cancel_exactly_one_holds",
        ),
        _attack(
            "made-up and old fingerprints",
            "decide nothing",
            "test_a_made_up_fingerprint_decides_nothing",
            "test_an_old_fingerprint_decides_nothing_and_the_difference_is_told",
        ),
        _attack("made-up tokens", "open nothing", "test_a_made_up_token_opens_nothing"),
        _attack(
            "tokens that lie, unsigned ones, answers to another browser (OIDC)",
            "let nobody in",
            "test_a_token_that_lies_lets_nobody_in",
            "test_a_token_that_the_provider_did_not_sign_lets_nobody_in",
            "test_the_answer_to_another_browser_lets_nobody_in",
        ),
        _attack(
            "private machines asked by the web tools, by names and redirects (SSRF)",
            "not asked",
            "test_a_private_machine_is_not_asked_however_it_is_written",
            "test_a_redirect_to_a_private_machine_is_not_followed",
        ),
        _attack(
            "hostile values in every argument, and bytes that are no JSON",
            "a result or the envelope",
            "test_q01_no_arguments_bring_anything_but_a_result_or_the_envelope",
            "test_q01_no_hostile_value_in_any_place_does",
            "test_q01_hostile_bytes_over_http_get_the_envelope",
            "test_q01_hostile_bytes_over_stdio_get_the_envelope",
        ),
        _attack(
            "hosts and origins that are not ours", "refused", "test_hosts_and_origins_that_are_not_ours_are_refused"
        ),
        _attack(
            "scripts in names and notes, in a real browser (XSS)",
            "do nothing",
            "test_hostile_names_and_notes_do_nothing_in_a_real_browser",
            "test_hostile_text_is_only_text",
        ),
        _attack(
            "forms of other sites and other sessions",
            "do nothing",
            "test_the_form_of_somebody_elses_session_does_nothing",
        ),
    ),
}


class Proof(NamedTuple):
    """Where a test is, and how it runs."""

    file: str
    databases: str
    run: str


def table() -> str:
    """The page tests/ATTACKS.md."""
    known = proofs()
    parts = [
        "# Which test holds which attack",
        "Written by `python -m tests.generate`. `make test` runs the suite, `make proof` the long tests.",
    ]
    for subject, attacks in ATTACKS.items():
        rows = ["| tried | now | tests | on | run by |", "|---|---|---|---|---|"]
        for one in attacks:
            found = [known[name] for name in one.tests]
            cells = (
                one.tried,
                one.now,
                "<br>".join(f"`{name}`" for name in one.tests),
                "<br>".join(proof.databases for proof in found),
                "<br>".join(proof.run for proof in found),
            )
            rows.append(f"| {' | '.join(cells)} |")
        parts += [f"## {subject}", "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


@cache
def proofs() -> dict[str, Proof]:
    """Every test by its name; a name that several files have is not among them."""
    found: dict[str, list[Proof]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        fixtures = _fixtures(path)
        for node in _functions(path):
            if node.name.startswith("test_"):
                run = "proof" if "pytest.mark.proof" in map(ast.unparse, node.decorator_list) else "suite"
                proof = Proof(str(path.relative_to(TESTS)), _databases(_needs(node), fixtures), run)
                found.setdefault(node.name, []).append(proof)
    return {name: proofs[0] for name, proofs in found.items() if len(proofs) == 1}


def _databases(needs: set[str], fixtures: dict[str, set[str]]) -> str:
    """By the fixtures that a test takes, and those that they take."""
    reached, ahead = set[str](), list(needs)
    while ahead:
        name = ahead.pop()
        if name not in reached:
            reached.add(name)
            ahead += fixtures.get(name, ())
    if reached & {"store", "empty_store"}:
        return "both"
    if reached & {"cluster", "postgres_template"} and not reached & {"sqlite_template", "empty_home"}:
        return "PostgreSQL"
    return "SQLite" if reached & {"sqlite_template", "empty_home", "sample_home"} else "none"


def _fixtures(path: Path) -> dict[str, set[str]]:
    """What each fixture takes that a test of this file can see; the nearest of a name counts."""
    folders = [folder for folder in reversed(path.parents) if folder.is_relative_to(TESTS)]
    places = [*(folder / "conftest.py" for folder in folders), path]
    return {
        node.name: _needs(node)
        for place in places
        if place.exists()
        for node in _functions(place)
        if any("fixture" in ast.unparse(one) for one in node.decorator_list)
    }


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _needs(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The arguments, and fixtures that are named in decorators."""
    words = {
        part.value
        for decorator in node.decorator_list
        for part in ast.walk(decorator)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }
    return {argument.arg for argument in node.args.args} | words
