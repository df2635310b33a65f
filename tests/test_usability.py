"""What once broke or confused newcomers and operators: each finding with the tests that hold it, or why none does."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PEOPLE, OPERATOR = "cli/test_people.py", "dashboard/test_operator.py"
SCREENS, README = "dashboard/test_screens.py", "examples/test_readme.py"

# finding → its tests as "file::name", or a reason in words
SNAGS: dict[str, tuple[str, ...]] = {
    "the demo's next commands cannot be pasted": (
        f"{PEOPLE}::test_the_demo_names_commands_that_can_be_pasted",
        "acceptance/test_demo.py::test_demo_writes_the_report_and_ends",
    ),
    "README's first own orchestration fails": (f"{README}::test_every_command_of_readme_runs_as_written",),
    "README's curl never ends with the shipped workers": (
        f"{README}::test_every_command_of_readme_runs_as_written",
        f"{PEOPLE}::test_up_says_what_there_is_and_how_to_stop",
    ),
    "`up &` and `submit` in one line race": (f"{README}::test_every_command_of_readme_runs_as_written",),
    "Fluxo C in one command ends in failure": ("cli/test_submit.py::test_a_plan_of_fluxo_c",),
    "plain workers omit ticket_id": (
        "examples/test_plain_workers.py::test_a_plain_worker_answers_with_the_ticket_and_the_attempt",
    ),
    "an old Python leaves an environment behind": (
        f"{PEOPLE}::test_an_old_python_leaves_nothing_behind_that_a_new_one_would_stumble_over",
    ),
    "`oraculo up` prints one line": (f"{PEOPLE}::test_up_says_what_there_is_and_how_to_stop",),
    "log lines show Python's repr": (f"{PEOPLE}::test_a_log_line_for_people_has_no_python_in_it",),
    "the embedded orchestrator writes to the program's output": (
        f"{PEOPLE}::test_the_embedded_orchestrator_leaves_standard_output_to_its_program",
    ),
    "`doctor` does not print what is in force": ("cli/test_replay.py::test_doctor_finds_nothing_wrong",),
    "a missing extra exits 5 and the page says 2": (
        "cli/test_main.py::test_extras_that_are_missing_say_so",
        "cli/test_main.py::test_errors_have_an_exit_status",
    ),
    "`ls --status foo` exits 1": ("cli/test_look.py::test_ls_refuses_what_it_does_not_understand",),
    "languages are mixed at the terminal": (
        f"{PEOPLE}::test_tables_have_titles_in_the_language_of_the_person",
        f"{PEOPLE}::test_every_column_has_a_title_in_both_languages",
        f"{PEOPLE}::test_help_shows_no_type_beside_a_switch_and_is_of_one_language",
        "cli/test_look.py::test_words_are_english_in_an_english_locale",
    ),
    "empty lists say `nothing`": (f"{PEOPLE}::test_an_empty_list_is_a_sentence",),
    "`watch` counts from when one looks": (f"{PEOPLE}::test_the_picture_counts_from_the_beginning_of_the_run",),
    "`watch` names tickets of plans alike": (f"{PEOPLE}::test_the_picture_names_tickets_of_fluxo_c_by_their_task",),
    "times are neither local nor relative": (f"{PEOPLE}::test_ages",),
    "ids and statuses are not completed": (f"{PEOPLE}::test_the_shell_completes_ids_and_statuses",),
    "`bench` puts all figures into one cell": (f"{PEOPLE}::test_figures_of_a_bench_are_one_below_the_other",),
    "`prove` has no verdict": (f"{PEOPLE}::test_the_proof_ends_with_a_verdict",),
    "`1 problems`": (f"{PEOPLE}::test_one_problem_is_one",),
    "`approve` without a name records none": (f"{PEOPLE}::test_a_decision_has_a_name_also_when_none_is_given",),
}

MESSAGES: dict[str, tuple[str, ...]] = {  # those that told too little
    "wrong field": (f"{PEOPLE}::test_a_field_that_does_not_exist_is_named_with_what_was_meant",),
    "`my_module.py:worker`": (f"{PEOPLE}::test_a_worker_that_is_named_like_a_file",),
    "broker down at the start": (f"{PEOPLE}::test_up_says_that_requests_wait_for_a_broker_that_is_away",),
    "wrong API key": (f"{PEOPLE}::test_no_key_and_a_wrong_key_are_told_apart",),
    "unknown variable": ("test_settings.py::test_a_misspelt_variable_is_named_with_the_nearest_one",),
    "Ctrl-C in `watch`": (f"{PEOPLE}::test_watching_can_be_left_and_it_says_how_to_come_back",),
    "unknown command": ("cli/test_main.py::test_a_misspelt_command_is_told_with_the_nearest_one",),
    "misspelt kind of a task": (
        "plans/test_faults.py::test_a_misspelt_kind_of_task_is_one_fault_in_the_words_of_the_document",
    ),
    "`watch` of a plan with a wait": (f"{PEOPLE}::test_the_picture_has_a_title_for_every_kind_of_task",),
    "Python 3.10": (f"{PEOPLE}::test_an_old_python_leaves_nothing_behind_that_a_new_one_would_stumble_over",),
}

DASHBOARD: dict[str, tuple[str, ...]] = {
    "D1 a server that is gone looks healthy": (f"{OPERATOR}::test_a_server_that_is_gone_is_seen_on_every_page",),
    "D2 error text covers the bars": (f"{OPERATOR}::test_an_error_stands_beside_the_bars_and_not_over_them",),
    "D3 retry, edit and form of plans": (
        f"{OPERATOR}::test_a_plan_of_fluxo_c_is_neither_repeated_nor_edited_as_a_request",
        "dashboard/test_plan_editor.py::test_a_plan_is_drawn_while_one_types_and_started",
        "dashboard/test_run_page.py::test_a_wide_plan_has_a_map_and_a_run_is_retried_from_a_task",
    ),
    "D4 a copied command fails": (
        f"{OPERATOR}::test_the_command_that_replays_asks_this_server",
        "dashboard/test_stories.py::test_copied_as_curl_and_as_command_line",
    ),
    "D5 no fit or zoom of wide graphs": (
        "dashboard/test_plan_editor.py::test_pictures_are_fitted_and_enlarged",
        "dashboard/test_run_page.py::test_a_wide_plan_has_a_map_and_a_run_is_retried_from_a_task",
    ),
    "D6 total failure in green": (f"{OPERATOR}::test_an_action_that_did_nothing_is_no_success",),
    "D7 nothing selected is said to have ended": (f"{OPERATOR}::test_nothing_selected_is_said_as_such",),
    "D8 a source that a run never had is ambiguous": (
        "core/test_results.py::test_a_name_that_the_plan_never_had_is_unknown_once_nothing_is_open",
    ),
    "D9 executors on a broker are never seen": (f"{OPERATOR}::test_an_executor_on_a_broker_is_seen_by_its_answers",),
    "D10 queues of the orchestrator have no worker": (f"{OPERATOR}::test_queues_of_the_orchestrator_are_its_own",),
    "D11 topics that only tell grow, and nobody consumes them": (
        "contracts/test_broker.py::test_a_full_broker_says_so_and_recovers",
        f"{OPERATOR}::test_a_topic_that_only_tells_needs_no_reader",
    ),
    "D12 `Open 0` with open tickets": (f"{OPERATOR}::test_tickets_that_wait_for_others_count_as_open",),
    "D13 a bad `since` says nothing useful": (f"{OPERATOR}::test_a_filter_that_cannot_be_read_says_what_can",),
    "D14 texts in the other language": (
        f"{SCREENS}::test_what_both_languages_say_alike_is_data",
        "dashboard/test_texts.py::test_details_of_dead_letters_are_in_the_language_of_the_reader",
        f"{OPERATOR}::test_durability_is_said_in_the_language_of_the_page",
    ),
    "D15 a phone cuts and overlaps": (f"{SCREENS}::test_every_page_is_in_order",),
    "D16 empty pages recommend what is not seen there": (f"{OPERATOR}::test_an_empty_page_offers_what_shows_up_there",),
    "time in the queue is drawn as time with a worker": (
        "dashboard/test_run_page.py::test_time_in_the_queue_is_told_from_time_with_the_worker",
    ),
    "a wait is drawn as time with a worker": (
        "dashboard/test_waits.py::test_a_task_is_approved_and_a_signal_is_sent_on_the_page",
    ),
    "a command in a sentence shows its backticks": (
        "dashboard/test_waits.py::test_a_command_in_the_sentence_is_shown_as_one",
    ),
    "what undoes items of a map stands unconnected": (
        "dashboard/test_layout.py::test_what_undoes_the_items_of_a_map_is_one_node_behind_it",
    ),
    "peers' rows of the table are as of what they publish": ("nothing to run: docs/comparison.md says so",),
}


def names_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("table", [SNAGS, MESSAGES, DASHBOARD], ids=["snags", "messages", "dashboard"])
def test_every_finding_has_its_tests_or_a_reason(table: dict[str, tuple[str, ...]]) -> None:
    for finding, held in table.items():
        assert held, finding
        for one in held:
            path, separator, name = one.partition("::")
            if separator:
                assert name in names_in(TESTS / path), f"{finding}: {one}"
            else:
                assert len(one.split()) > 3, f"{finding}: no test, and no reason"
