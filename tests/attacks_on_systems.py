"""The attacks on settings, shares, doors, the record and storage: what happens to each now, and its tests."""

from __future__ import annotations

from tests.support.attack import Attack, attack

ON_SYSTEMS: dict[str, tuple[Attack, ...]] = {
    "Settings come from the operator": (
        attack(
            "a hostile `.env` in the current folder",
            "not read; the start names where home, database and policies are",
            "test_a_file_of_the_current_folder_decides_nothing",
            "test_a_server_tells_at_its_start_where_home_database_and_policies_are",
        ),
        attack(
            "a file of settings that others can write or own",
            "refused",
            "test_a_file_that_others_can_change_is_refused",
            "test_a_file_of_another_user_is_refused",
        ),
        attack(
            "policies of a hostile folder, 79 % off",
            "with `CPQ_POLICIES_ADOPT=manual` used only after their adoption by hash",
            "test_a_hostile_folder_is_used_only_after_its_adoption",
            "test_only_the_content_with_the_given_hash_is_adopted",
            "test_a_changed_stored_set_is_refused_until_the_folder_is_adopted_again",
        ),
        attack(
            "home, database and documents read by others on the machine",
            "made for the operator alone, whatever the umask",
            "test_home_database_and_documents_are_for_the_operator_alone",
        ),
    ),
    "Fair shares": (
        attack(
            "60 PDFs of one caller at once, through the server",
            "four are made at a time, and others' calls and PDFs pass",
            "test_sixty_documents_of_one_caller_leave_room_for_the_calls_and_documents_of_another",
        ),
        attack(
            "150 requests whose bodies of 4 MB never end",
            "64 MB are held at most, and small requests pass",
            "test_slow_bodies_hold_a_bounded_memory_and_small_calls_pass",
        ),
        attack(
            "pages of the web without end, kept for a caller",
            "they count for the caller's share of a day",
            "test_pages_that_are_kept_count_for_the_caller_who_asked_for_them",
        ),
        attack(
            "999 sessions of one caller in 12 s",
            "each caller has a share; UNAVAILABLE with a time",
            "test_one_caller_cannot_take_all_sessions",
        ),
        attack(
            "60 PDF calls of one caller at once",
            "they wait in their share, others are served in turn",
            "test_a_caller_with_many_calls_leaves_a_place_for_others",
            "test_freed_places_go_to_the_callers_in_turn",
            "test_too_many_waiting_calls_are_told_to_come_back",
        ),
        attack("`tools/list` without end", "limited like calls", "test_a_flood_of_lists_is_limited_like_calls"),
        attack(
            "clones of a quote with long notes, 95 GB an hour",
            "text of a quote and bytes of a caller and day are limited, and the disk has a watermark",
            "test_q03_more_text_than_a_quote_may_have_names_the_longest_and_the_amount",
            "test_bytes_of_a_day_are_counted_over_processes_and_restarts",
            "test_a_nearly_full_disk_refuses_what_stores_and_reads_go_on",
        ),
        attack(
            "drafts that nobody touches, without end",
            "they expire by policy and say why",
            "test_only_a_draft_that_nobody_touches_expires_and_says_why",
        ),
        attack(
            "guards that stand in the way of ordinary callers",
            "twenty ordinary tasks meet no refusal",
            "test_twenty_ordinary_tasks_meet_no_refusal",
        ),
        attack(
            "1,100 half-sent requests without a token",
            "the oldest make room; each has a deadline",
            "test_a_half_sent_request_is_ended_and_makes_room_for_others",
            "test_a_request_that_never_comes_is_ended",
        ),
        attack(
            "150 slow POSTs that hold 600 MB",
            "bodies have a deadline and a size",
            "test_a_request_that_never_comes_is_ended",
            "test_a_body_that_comes_in_pieces_is_healed_and_a_huge_one_refused",
        ),
        attack(
            "notifications, or bodies that are no message, without end",
            "limited for each caller, whatever they are; the answer says when to try again",
            "test_requests_that_are_no_calls_are_limited_too",
        ),
        attack(
            "`/readyz` without end",
            "one look in 2 s writes; `/healthz` writes nothing",
            "test_a_flood_of_readyz_writes_one_row_and_healthz_none",
        ),
        attack(
            "a caller who calls without end",
            "refused, with how long to wait",
            "test_q02_a_caller_that_calls_too_often_is_told_how_long_to_wait",
        ),
    ),
    "Doors": (
        attack(
            "Content-Length with Transfer-Encoding",
            "refused, and the connection is closed",
            "test_a_request_with_two_lengths_is_refused_and_the_connection_closed",
        ),
        attack(
            "`/metrics` without a token",
            "needs one or loopback once there are tokens",
            "test_metrics_from_another_machine_need_a_token_once_there_are_any",
        ),
        attack(
            "a formula in a CSV",
            "an apostrophe before it, in every file",
            "test_a_file_runs_no_formula_in_a_spreadsheet",
            "test_a_cell_of_hidden_text_is_shown_and_is_no_formula",
        ),
        attack(
            "direction overrides and invisible characters",
            "shown by their codes, and left out of documents",
            "test_pages_and_spreadsheets_show_what_a_text_hides",
            "test_a_document_prints_nothing_that_hides_or_turns_text_around",
            "test_q03_sentences_show_what_a_text_hides_and_fields_keep_it",
        ),
        attack(
            "an OIDC answer of another provider (`iss`)",
            "lets nobody in",
            "test_an_answer_that_another_provider_sent_lets_nobody_in",
        ),
        attack(
            "a malformed database address with its password",
            "never printed",
            "test_a_database_address_never_shows_its_password",
            "test_an_address_that_cannot_be_parsed_is_refused_in_words",
            "test_an_unreachable_database_is_told_without_its_password",
        ),
        attack(
            "a file for `quote_verify_pdf` that unpacks without end",
            "searched only so far",
            "test_a_hostile_file_is_searched_only_so_far",
            "test_a_stream_that_inflates_without_end_is_looked_at_only_so_far",
        ),
        attack(
            "log lines of refused requests without end",
            "counted and not written",
            "test_a_flood_of_lines_is_counted_and_not_written",
            "test_requests_that_are_none_leave_few_lines_in_the_log",
        ),
    ),
    "Rows and record agree": (
        attack(
            "a stored answer changed, pointed at another quote or invented",
            "not given again; with a key not even when its digest was changed, too",
            "test_an_answer_is_replayed_as_long_as_nobody_changed_it",
            "test_an_answer_that_points_at_another_quote_is_not_replayed",
            "test_an_invented_answer_is_not_replayed",
            "test_with_a_key_an_answer_forged_together_with_its_entry_is_not_replayed",
        ),
        attack(
            "a token with another role or owner, opened again after its end, or invented; a delegation invented",
            "gives no rights",
            "test_a_changed_token_opens_nothing_until_it_is_mended",
            "test_a_token_that_was_opened_again_or_invented_opens_nothing",
            "test_an_invented_delegation_gives_no_role",
            "test_with_a_key_tokens_count_only_while_their_record_is_signed",
        ),
        attack(
            "a session of the console or a sign-in link invented in the database, or given an approver's name",
            "with a key outside the database, it signs nobody in",
            "test_with_a_key_an_invented_session_or_link_signs_nobody_in",
        ),
        attack(
            "all states of the catalogue removed before the next import",
            "the import signs nothing",
            "test_prices_without_a_record_are_signed_by_a_baseline_and_by_no_import",
        ),
        attack(
            "a status set to approved by SQL, then sent",
            "refused as CONFLICT that names the part",
            "test_a_status_set_to_approved_is_not_sent",
        ),
        attack(
            "forged approvals and votes",
            "nothing is asked, decided or sent",
            "test_a_forged_approval_does_not_let_a_quote_out",
        ),
        attack(
            "notes, terms, lines or amounts of a sent version changed by SQL",
            "neither accepted nor printed",
            "test_changed_terms_of_a_sent_version_are_neither_accepted_nor_printed",
            "test_a_change_that_was_not_made_by_a_call_stays_visible_after_later_calls",
        ),
        attack(
            "a document row pointed at a forged file, or the file replaced",
            "refused by `quote_pdf` and `quote_verify_pdf`, and named",
            "test_a_document_row_that_points_at_a_forged_file_is_refused",
            "test_a_changed_file_of_a_document_is_named",
        ),
        attack(
            "tokens, prices, accounts, stored answers or any other row changed by SQL",
            "`cpq audit verify --state` names each",
            "test_every_forged_row_is_named",
            "test_forged_and_deleted_rows_are_told_apart",
            "test_a_price_is_named_and_stays_forged_after_the_next_import",
            "test_rows_are_compared_with_the_record_and_each_that_differs_is_named",
        ),
        attack(
            "an entry about a quote removed",
            "the entries about the quote are not complete, and the check names it",
            "test_a_removed_entry_is_noticed",
        ),
        attack(
            "rows and their digests forged together; signatures or states left out; an older state put back",
            "with a key outside the database no call relies on it",
            "test_a_record_forged_together_with_its_rows_is_relied_on_by_no_call",
            "test_a_signature_that_is_not_by_the_key_is_named",
            "test_states_from_before_the_key_are_counted_and_signed_where_the_rows_are_whole",
        ),
        attack(
            "a key that others can read or replace",
            "refused",
            "test_a_key_that_others_can_read_or_write_is_refused",
        ),
        attack(
            "the chain cut off or rewritten with all its hashes, and a kept head changed to fit",
            "a head that the key signed shows it",
            "test_a_signed_head_notices_a_chain_that_is_whole_and_not_the_same",
            "test_a_head_that_somebody_changed_is_not_believed",
            "test_a_chain_cut_off_together_with_its_head_does_not_match_a_kept_head",
        ),
        attack(
            "audit entries changed, sealed again, deleted or truncated with the credentials of a server",
            "PostgreSQL refuses; the role only adds entries",
            "test_the_server_refuses_every_change_of_the_record",
            "test_the_owner_of_the_tables_is_not_taken_for_the_role",
        ),
    ),
    "Faults": (
        attack(
            "a full disk, an unreadable store, a directory in the way of a PDF",
            "UNAVAILABLE with the operator's next step",
            "test_a_document_that_cannot_be_stored_is_unavailable",
        ),
        attack(
            "a killed PDF worker",
            "costs a retry, not the call",
            "test_the_death_of_a_worker_costs_a_retry_and_not_the_call",
            "test_a_worker_that_dies_every_time_is_unavailable",
        ),
        attack(
            "a read-only database file",
            "UNAVAILABLE, `/readyz` says so, and it works again at once",
            "test_a_read_only_database_is_unavailable_and_works_again_at_once",
            "test_a_server_whose_database_cannot_be_written_is_not_ready",
        ),
        attack(
            "a damaged page of the database",
            "named to the caller, by `/readyz` and by `cpq doctor`",
            "test_a_damaged_page_is_named_to_the_caller_and_by_readyz",
            "test_doctor_fails_on_a_damaged_page",
        ),
        attack(
            "a damaged or emptied catalogue index",
            "rebuilt by itself or by `cpq repair`",
            "test_a_damaged_word_index_is_mended",
            "test_an_emptied_word_index_is_told_and_mended",
            "test_an_emptied_dictionary_is_told_and_mended",
            "test_doctor_and_repair_find_and_mend_an_emptied_word_index",
        ),
        attack(
            "damaged or lost vectors of a search",
            "they count as missing, and are computed again",
            "test_damaged_and_lost_vectors_are_computed_again",
        ),
        attack("a lost document file", "`cpq repair` renders it again", "test_repair_renders_a_lost_document_again"),
        attack(
            "SIGTERM while a PDF is rendered, which left a worker",
            "ends in time and leaves no process",
            "test_sigterm_ends_a_server_that_renders_and_leaves_no_worker",
        ),
        attack(
            "a start while the policies are broken",
            "the last good set that was stored is used, and health names the fault",
            "test_a_server_that_starts_with_a_broken_folder_uses_the_last_good_set",
        ),
        attack(
            "processes killed under load, lost acknowledgements of a commit",
            "nothing is lost, doubled or half written",
            "test_q11_a_process_killed_halfway_leaves_nothing_or_everything",
            "test_q11_what_a_killed_process_had_reported_is_there_and_the_rest_can_be_repeated",
            "test_a_lost_acknowledgement_of_the_commit_does_not_do_the_work_twice",
        ),
    ),
    "What held before": (
        attack(
            "fifty decisions at once",
            "exactly one holds",
            "test_of_fifty_decisions_at_once_exactly_one_holds",
            "test_of_fifty_decisions_at_once_exactly_one_holds_two_hundred_times",
        ),
        attack(
            "accept, decline and cancel at once",
            "exactly one holds",
            "test_of_accept_decline_and_cancel_exactly_one_holds",
        ),
        attack(
            "made-up and old fingerprints",
            "decide nothing",
            "test_a_made_up_fingerprint_decides_nothing",
            "test_an_old_fingerprint_decides_nothing_and_the_difference_is_told",
        ),
        attack("made-up tokens", "open nothing", "test_a_made_up_token_opens_nothing"),
        attack(
            "tokens that lie, unsigned ones, answers to another browser (OIDC)",
            "let nobody in",
            "test_a_token_that_lies_lets_nobody_in",
            "test_a_token_that_the_provider_did_not_sign_lets_nobody_in",
            "test_the_answer_to_another_browser_lets_nobody_in",
        ),
        attack(
            "private machines asked by the web tools, by names and redirects (SSRF)",
            "not asked",
            "test_a_private_machine_is_not_asked_however_it_is_written",
            "test_a_redirect_to_a_private_machine_is_not_followed",
        ),
        attack(
            "hostile values in every argument, and bytes that are no JSON",
            "a result or the envelope",
            "test_q01_no_arguments_bring_anything_but_a_result_or_the_envelope",
            "test_q01_no_hostile_value_in_any_place_does",
            "test_q01_hostile_bytes_over_http_get_the_envelope",
            "test_q01_hostile_bytes_over_stdio_get_the_envelope",
        ),
        attack(
            "hosts and origins that are not ours", "refused", "test_hosts_and_origins_that_are_not_ours_are_refused"
        ),
        attack(
            "scripts in names and notes, in a real browser (XSS)",
            "do nothing",
            "test_hostile_names_and_notes_do_nothing_in_a_real_browser",
            "test_hostile_text_is_only_text",
        ),
        attack(
            "forms of other sites and other sessions",
            "do nothing",
            "test_the_form_of_somebody_elses_session_does_nothing",
        ),
    ),
}
