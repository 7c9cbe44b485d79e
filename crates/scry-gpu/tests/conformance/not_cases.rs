//! The tests of this program that no case states, by name.

use std::fs;

use crate::support::root;

/// Tests that only a native program runs, and why.
struct Native {
    topic: &'static str,
    reason: &'static str,
    tests: &'static [&'static str],
}

const NATIVE: [Native; 16] = [
    Native {
        topic: "batches",
        reason: "batches, recordings and downloads in random programs, which proptest shrinks",
        tests: &[
            "random_batches",
            "random_programs_match_the_simulation",
            "long_chains",
            "downloads_between_steps",
            "recording_downloads_show_latest_replay",
            "submitted_batches_can_be_reused",
        ],
    },
    Native {
        topic: "beyond_4_gib",
        reason: "buffers of more than 4 GiB, too large to be listed",
        tests: &[
            "slices_beyond_4_gib_round_trip",
            "bindings_end_below_4_gib",
            "native_kernels_access_beyond_4_gib",
            "transfers_reach_beyond_4_gib",
        ],
    },
    Native {
        topic: "bindings",
        reason: "structures and arrays of Rust as elements",
        tests: &["uniform_structures", "uniform_scalars_arrays_and_matrices"],
    },
    Native {
        topic: "bound_kernels",
        reason: "arguments by name, in batches and recordings",
        tests: &["arguments_are_set_by_name", "scalar_immediate_uses_its_variable_name"],
    },
    Native {
        topic: "cases",
        reason: "the runners themselves",
        tests: &[
            "runners_notice_wrong_words",
            "runners_notice_values_beyond_tolerance",
            "runners_notice_wrong_properties",
            "runners_notice_missing_and_wrong_errors",
        ],
    },
    Native {
        topic: "features",
        reason: "a device without features, which the null driver configures",
        tests: &["missing_features_are_named"],
    },
    Native {
        topic: "indirect",
        reason: "counts that change between the launches of a batch or a recording",
        tests: &[
            "launches_see_counts_in_batch_order",
            "launches_see_counts_of_earlier_submissions",
            "replays_see_changed_counts",
            "unordered_indirect_launches_all_run",
            "workgroups_may_wait_for_predecessors",
            "counts_accept_other_element_types",
            "dropped_counts_keep_launch_reusable",
            "indirect_launches_are_timed_once",
            "time_limit_ends_maximal_indirect_launch",
        ],
    },
    Native {
        topic: "layouts",
        reason: "structures of Rust as elements, whose fields are checked",
        tests: &[
            "derived_structures_round_trip",
            "missing_padding_error_names_field",
            "scalars_bind_to_their_vectors_only",
            "vec3_arrays_need_padded_elements",
        ],
    },
    Native {
        topic: "limits",
        reason: "limits of one driver, in recordings",
        tests: &[
            "long_loops_end_or_fail",
            "loops_of_neighbours_count_together",
            "errors_name_the_truncated_launch",
            "deep_nesting_works_or_is_rejected",
        ],
    },
    Native {
        topic: "memory",
        reason: "memory that is freed and reused, and transfers without a kernel",
        tests: &[
            "reused_memory_is_zeroed",
            "zeroing_precedes_any_first_use",
            "every_element_size_round_trips",
        ],
    },
    Native {
        topic: "native",
        reason: "kernels in PTX and CUDA C, and libraries that are opened from files",
        tests: &[
            "ptx_runs_with_the_declared_parameters",
            "cuda_c_runs_with_structure_parameter",
            "blocks_get_declared_shared_memory",
            "errors_contain_compiler_messages",
            "cublas_meets_its_stated_precision",
            "cublas_multiplies_halves",
            "cublas_products_are_ordered",
            "recorded_products_share_workspace_safely",
        ],
    },
    Native {
        topic: "parameters",
        reason: "structures of Rust as immediates, and launches in sequence",
        tests: &["labels_name_the_source_in_errors", "immediate_structures"],
    },
    Native {
        topic: "replays",
        reason: "recordings, replayed by threads too",
        tests: &[
            "replays_read_their_own_inputs",
            "unwritten_inputs_are_zero",
            "inputs_are_ordered_with_other_submissions",
            "threads_keep_their_inputs",
        ],
    },
    Native {
        topic: "slices",
        reason: "transfers between slices, without a kernel",
        tests: &["batches_accept_slices_and_buffers", "copies_accept_slices_and_buffers"],
    },
    Native {
        topic: "unchecked",
        reason: "compilation without checks, which is unsafe",
        tests: &["unchecked_kernels_within_bounds_match"],
    },
    Native {
        topic: "views",
        reason: "views of buffers, without a type or with another one",
        tests: &[
            "views_bind_as_their_type",
            "untyped_buffers_check_their_type",
            "untyped_bytes_fit_structures",
            "overlaps_are_seen_through_views",
            "rejects_unaligned_owned_slices",
        ],
    },
];

/// The names of the tests in a source.
fn tests(source: &str) -> Vec<String> {
    let after = source.split("#[test]\n").skip(1);
    let name =
        |text: &str| Some(text.trim_start().strip_prefix("fn ")?.split_once('(')?.0.to_owned());
    after.filter_map(name).filter(|name| !name.starts_with('$')).collect()
}

#[test]
fn native_tests_are_listed_with_reasons() {
    let folder = root().join("crates/scry-gpu/tests/conformance");
    let mut found = 0;
    for file in fs::read_dir(&folder).expect("the folder of this program") {
        let path = file.expect("a file of this program").path();
        if path.extension().is_none_or(|end| end != "rs") {
            continue;
        }
        let topic = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let tests = tests(&fs::read_to_string(&path).expect("a source"));
        if tests.is_empty() || topic == "not_cases" {
            continue;
        }
        let native = NATIVE.iter().find(|native| native.topic == topic);
        let native = native.unwrap_or_else(|| panic!("{topic} is not listed in not_cases.rs"));
        assert_eq!(tests, native.tests, "tests of {topic}");
        assert!(!native.reason.is_empty());
        found += 1;
    }
    assert_eq!(found, NATIVE.len(), "listed topics that have no tests");
}
