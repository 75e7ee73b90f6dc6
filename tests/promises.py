"""What is promised against callers and insiders, sentence by sentence, with the tests or figures that show each."""

from __future__ import annotations

from tests.support.attack import Promise, promise

PROMISES: dict[str, tuple[Promise, ...]] = {
    "Approvals and policy": (
        promise(
            "A kept approval covers no more in any respect than the version that a person saw; what else, a count of "
            "every unit and month agrees",
            "test_a_version_gives_more_exactly_when_a_count_of_every_unit_and_month_says_so",
            "test_what_was_approved_covers_less_and_never_more",
        ),
        promise(
            "Same account, currency, lines, products, options, texts and payment terms; no quantity, term or validity "
            "larger; no line, override or free period cheaper",
            "test_every_respect_in_which_a_customer_gets_more_is_named",
            "test_another_product_under_the_number_of_a_removed_line_is_asked_about",
        ),
        promise(
            "No fact that its rule read is worse; it is measured against the version that was really decided",
            "test_a_kept_approval_of_a_margin_never_covers_a_lower_one",
            "test_what_got_no_worse_is_kept_and_what_did_is_asked_again",
        ),
        promise(
            "Anything else is asked again, with the difference shown",
            "test_what_was_approved_for_one_seat_is_not_kept_for_190_000",
            "test_the_reason_names_what_got_worse_and_never_a_cost_or_a_margin",
        ),
        promise("A setting switches keeping off", "test_keeping_can_be_switched_off"),
        promise(
            "Free units have their cost, and count for each product over the quote",
            "test_free_units_have_their_cost_in_the_margin",
            "test_four_hundred_lines_have_no_more_free_units_than_one",
        ),
        promise(
            "Open and recent quotes of a deal or an account count together in the shipped policies",
            "test_six_quotes_of_99_990_are_one_deal",
            "test_deals_under_several_names_add_up_for_their_account",
            "test_only_what_is_offered_or_was_sold_lately_counts",
        ),
        promise("Discounts in money have ladders", "test_four_percent_of_a_very_large_deal_is_much_money"),
        promise(
            "Free text of an agent for the customer needs a person, unless it is of the clause library",
            "test_a_side_letter_of_an_agent_needs_a_person",
            "test_a_clause_of_the_library_needs_nobody",
            "test_clauses_are_no_free_text",
        ),
        promise(
            "A draft that was priced before catalogue, costs or policies changed is judged again when it is sent",
            "test_a_draft_is_not_sent_at_a_price_that_the_catalogue_no_longer_has",
            "test_a_draft_is_not_sent_at_the_price_of_an_earlier_day",
            "test_a_draft_is_not_sent_when_todays_cost_needs_an_approval",
            "test_a_draft_is_not_sent_when_todays_policies_need_an_approval",
        ),
        promise(
            "The PDF of a superseded version is stamped",
            "test_the_pdf_of_a_superseded_version_is_stamped_and_what_was_issued_stays",
        ),
        promise(
            "Who may not see margins learns only the role of a hidden rule, on a sent quote, too",
            "test_an_agent_learns_only_the_role_of_a_hidden_policy",
        ),
        promise(
            "Hidden verdicts rest on a coarse grid that is never too lenient",
            "test_a_verdict_on_the_grid_is_never_more_lenient",
            "test_no_line_of_any_quote_looks_cheaper_on_the_grid",
        ),
        promise(
            "Probing has a budget for each quote and caller",
            "test_a_quote_has_a_budget_of_changes_for_each_caller_over_restarts",
            "test_many_quotes_have_one_budget",
        ),
        promise(
            "2,000 calls narrow a cost to no better than the interval of the grid, 5 %",
            "test_2000_calls_narrow_a_cost_to_no_better_than_the_grid",
            "test_without_a_grid_the_same_calls_tell_costs_apart_that_differ_by_a_cent",
            "test_no_series_of_calls_narrows_a_cost_to_less_than_the_stated_interval",
        ),
    ),
    "Who is who": (
        promise(
            "A program has an owner, a person, who decides nothing that it made",
            "test_a_token_of_a_program_names_its_owner",
            "test_only_a_program_has_an_owner_and_only_a_person_owns",
            "test_nobody_approves_what_their_own_agent_made_changed_or_submitted",
        ),
        promise(
            "The same person by token, by subject or by e-mail is one",
            "test_nobody_approves_under_another_name_what_their_own_agent_made",
            "test_the_same_person_gets_in_however_the_provider_puts_it",
            "test_the_subject_of_a_provider_is_the_person_behind_a_program_and_decides_nothing_that_it_made",
        ),
        promise(
            "To act for somebody from a shell needs the secret of that person or of an administrator",
            "test_a_shell_alone_decides_nothing_once_tokens_exist",
            "test_a_shell_alone_makes_no_link_once_tokens_exist",
        ),
        promise(
            "A decision that waited while its token was revoked does not count",
            "test_a_decision_that_waited_while_its_token_was_revoked_does_not_count",
        ),
        promise(
            "Revoking the last token leaves the server closed",
            "test_a_server_stays_shut_when_its_last_token_is_revoked",
        ),
        promise(
            "To accept needs a person, the customer, or a policy that allows it",
            "test_an_agent_alone_does_not_take_a_quote_from_draft_to_accepted",
            "test_a_customer_accepts_the_sent_version_by_a_link_without_an_account",
            "test_the_policies_can_let_an_agent_record_what_the_customer_accepted",
        ),
    ),
    "Settings": (
        promise(
            "The `.env` of the current folder is not read; that of the home or a named one is",
            "test_a_file_of_the_current_folder_decides_nothing",
            "test_a_named_file_is_read_instead_of_that_of_the_home",
        ),
        promise(
            "A file of settings that others own or can write is refused",
            "test_a_file_that_others_can_change_is_refused",
            "test_a_file_of_another_user_is_refused",
        ),
        promise(
            "With manual adoption a changed folder is used after it, by hash and audited; else at the next look",
            "test_a_hostile_folder_is_used_only_after_its_adoption",
            "test_an_adoption_names_its_hash_in_the_audit_and_a_retry_does_nothing",
            "test_a_changed_file_is_picked_up_at_the_next_look",
        ),
        promise(
            "A start tells where home, database and policies are",
            "test_a_server_tells_at_its_start_where_home_database_and_policies_are",
        ),
        promise(
            "Home, database and documents are for the operator alone",
            "test_home_database_and_documents_are_for_the_operator_alone",
        ),
    ),
    "Fair shares": (
        promise(
            "Every caller has a share of places, sessions, documents and the queue",
            "test_a_caller_with_many_calls_leaves_a_place_for_others",
            "test_one_caller_cannot_take_all_sessions",
            "test_sixty_documents_of_one_caller_leave_room_for_the_calls_and_documents_of_another",
            "test_too_many_waiting_calls_are_told_to_come_back",
        ),
        promise(
            "Every method is limited, and `tools/list` is made once",
            "test_every_method_is_limited",
            "test_lists_have_a_smaller_limit_and_leave_calls_alone",
            "test_the_list_of_tools_is_made_once_for_all_callers",
        ),
        promise(
            "Every refusal is the envelope and says when to try again",
            "test_q02_a_caller_that_calls_too_often_is_told_how_long_to_wait",
            "test_one_caller_cannot_take_all_sessions",
            "test_every_method_is_limited",
        ),
        promise(
            "Text of a quote and bytes of a caller and day are limited; the disk has a watermark; drafts expire",
            "test_q03_more_text_than_a_quote_may_have_names_the_longest_and_the_amount",
            "test_bytes_of_a_day_are_counted_over_processes_and_restarts",
            "test_a_nearly_full_disk_refuses_what_stores_and_reads_go_on",
            "test_only_a_draft_that_nobody_touches_expires_and_says_why",
        ),
        promise(
            "Heads and bodies have deadlines, connections and buffers a cap, and `/healthz` is still answered",
            "test_a_request_that_never_comes_is_ended",
            "test_a_half_sent_request_is_ended_and_makes_room_for_others",
            "test_slow_bodies_hold_a_bounded_memory_and_small_calls_pass",
        ),
        promise(
            "A flood refuses nothing to a second caller; its p95 should be at most 5 times that without a flood",
            "test_a_flood_of_one_caller_refuses_nothing_to_another",
            "bench floods",
        ),
    ),
    "Doors": (
        promise(
            "Content-Length with Transfer-Encoding is refused and the connection closed",
            "test_a_request_with_two_lengths_is_refused_and_the_connection_closed",
        ),
        promise(
            "`/metrics` needs a token or loopback once there are tokens",
            "test_metrics_from_another_machine_need_a_token_once_there_are_any",
        ),
        promise(
            "No CSV runs a formula",
            "test_a_file_runs_no_formula_in_a_spreadsheet",
            "test_pages_and_files_of_a_sale_show_what_its_texts_hide_and_run_no_formula",
        ),
        promise(
            "Text that hides or turns is shown as it is wherever people read it",
            "test_pages_and_spreadsheets_show_what_a_text_hides",
            "test_pages_and_files_of_a_sale_show_what_its_texts_hide_and_run_no_formula",
            "test_a_document_prints_nothing_that_hides_or_turns_text_around",
        ),
        promise(
            "`iss` is checked in the answer of a provider", "test_an_answer_that_another_provider_sent_lets_nobody_in"
        ),
        promise(
            "An address of a database never prints its password",
            "test_a_database_address_never_shows_its_password",
            "test_an_address_that_cannot_be_parsed_is_refused_in_words",
        ),
        promise("`quote_verify_pdf` is bounded", "test_a_hostile_file_is_searched_only_so_far"),
        promise("Log lines of refused requests are limited", "test_a_flood_of_lines_is_counted_and_not_written"),
    ),
    "Integrity": (
        promise(
            "Entries carry the state they lead to, and `cpq audit verify --state` names every row that differs",
            "test_every_forged_row_is_named",
            "test_a_forged_order_delegation_and_held_decision_are_named",
            "test_what_calls_wrote_agrees_with_the_record",
            "test_rows_are_compared_with_the_record_and_each_that_differs_is_named",
        ),
        promise(
            "Heads are signed by a key of a file or a command, and can be published",
            "test_a_signed_head_notices_a_chain_that_is_whole_and_not_the_same",
            "test_a_command_gives_the_key_without_a_shell",
            "test_a_head_is_published_to_the_webhooks",
        ),
        promise(
            "`quote_send`, `quote_pdf`, `quote_verify_pdf` and replays check what they rely on",
            "test_a_status_set_to_approved_is_not_sent",
            "test_a_document_row_that_points_at_a_forged_file_is_refused",
            "test_an_answer_is_replayed_as_long_as_nobody_changed_it",
        ),
        promise(
            "On PostgreSQL a role can only add to the record",
            "test_the_server_refuses_every_change_of_the_record",
            "test_the_sql_for_a_role_is_printed_and_a_strange_name_refused",
        ),
    ),
    "Faults": (
        promise(
            "Nothing acknowledged is lost, doubled or half written",
            "test_q11_a_process_killed_halfway_leaves_nothing_or_everything",
            "test_a_lost_acknowledgement_of_the_commit_does_not_do_the_work_twice",
        ),
        promise(
            "A full disk or a folder in the way is UNAVAILABLE; the death of a worker costs a retry",
            "test_a_document_that_cannot_be_stored_is_unavailable",
            "test_the_death_of_a_worker_costs_a_retry_and_not_the_call",
        ),
        promise(
            "A read-only database is UNAVAILABLE and works with the first call after its end",
            "test_a_read_only_database_is_unavailable_and_works_again_at_once",
            "test_a_connection_from_the_time_of_a_read_only_database_costs_no_call",
        ),
        promise(
            "`/readyz` and `cpq doctor` try a write, the pages and the word index",
            "test_a_server_whose_database_cannot_be_written_is_not_ready",
            "test_a_damaged_page_is_named_to_the_caller_and_by_readyz",
            "test_doctor_fails_on_a_damaged_page",
            "test_an_emptied_word_index_is_told_and_mended",
            "test_doctor_and_repair_find_and_mend_an_emptied_word_index",
        ),
        promise(
            "What is derived is made again: the word index, vectors and documents",
            "test_a_damaged_word_index_is_mended",
            "test_damaged_and_lost_vectors_are_computed_again",
            "test_repair_renders_a_lost_document_again",
        ),
        promise(
            "SIGTERM ends in time and leaves no process",
            "test_sigterm_ends_a_server_that_renders_and_leaves_no_worker",
            "test_loops_that_go_on_working_share_one_time_to_end",
        ),
        promise(
            "A start while the policies are broken uses the last good set and says so",
            "test_a_server_that_starts_with_a_broken_folder_uses_the_last_good_set",
        ),
        promise(
            "100,000 calls leave the memory within 10 MB of what it was after 5,000",
            "test_a_server_maps_no_page_of_its_database_file",
            "bench memory",
        ),
    ),
    "For everybody else": (
        promise(
            "Every state and order of calls is explored with kept approvals, owners, split deals and acceptance",
            "test_no_path_of_a_split_deal_gives_a_customer_what_nobody_saw",
            "test_no_path_at_all_of_a_split_deal_gives_a_customer_what_nobody_saw",
            "test_no_path_at_all_reaches_sent_without_the_approvals_that_the_policies_ask_for",
        ),
        promise(
            "The demo and twenty ordinary tasks meet no refusal",
            "test_the_demo_prepares_an_empty_home_and_runs_to_its_end",
            "test_twenty_ordinary_tasks_meet_no_refusal",
        ),
        promise(
            "Old quotes keep their prices and documents",
            "test_a_frozen_request_comes_to_the_same_bytes",
            "test_q35_what_was_issued_stays_whatever_happens_to_the_catalogue",
            "test_a_quote_stored_before_there_were_codes_keeps_its_groups_total_and_document",
        ),
        promise("The checks cost ordinary calls little", "bench quotes"),
    ),
}
