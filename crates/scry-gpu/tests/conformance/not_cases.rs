//! Lists the tests of this program that are not cases of scry-conformance, with the reasons.

/// The tests of a file, and why they cannot be cases.
struct RustTests {
    topic: &'static str,
    reason: &'static str,
    tests: &'static [&'static str],
    source: &'static str,
}

macro_rules! rust_tests {
    ($($topic:ident: $reason:literal => $($test:ident)+;)+) => {
        const RUST_TESTS: &[RustTests] = &[$(RustTests {
            topic: stringify!($topic),
            reason: $reason,
            tests: &[$(stringify!($test)),+],
            source: include_str!(concat!(stringify!($topic), ".rs")),
        }),+];
    };
}

rust_tests! {
    batch_replays: "recordings within batches, which threads replay" =>
        replays_equal_their_commands downloads_follow_replays threads_share_a_recording;
    batches: "batches, recordings and downloads in random programs, which proptest shrinks" =>
        random_batches_match_simulation random_programs_match_simulation long_chains_are_ordered
        downloads_see_earlier_steps_only recording_downloads_show_latest_replay
        submitted_batches_can_be_reused;
    beyond_4_gib: "buffers of more than 4 GiB" =>
        slices_beyond_4_gib_round_trip bindings_end_below_4_gib native_kernels_access_beyond_4_gib
        transfers_reach_beyond_4_gib;
    bindings: "Rust structures and arrays as elements" =>
        uniform_structures_match_rust uniform_arrays_and_matrices_match_rust;
    bound_kernels: "arguments by name, in batches and recordings" =>
        arguments_are_set_by_name scalar_immediate_uses_its_variable_name
        prepared_launches_run_and_replay;
    cases: "the runners themselves" =>
        runners_notice_wrong_words runners_notice_values_beyond_tolerance
        runners_notice_wrong_properties runners_notice_missing_and_wrong_errors
        cases_pass_without_blocking;
    features: "a device without features, which the null driver configures" =>
        missing_features_are_named;
    indirect: "counts that change between launches of batches and recordings, and time limits" =>
        counts_follow_batch_order counts_follow_submission_order
        replays_use_changed_counts unordered_indirect_launches_all_run
        workgroups_may_wait_for_predecessors counts_accept_other_element_types
        dropped_counts_keep_launch_reusable indirect_launches_are_timed_once
        time_limit_ends_maximal_indirect_launch;
    layouts: "Rust structures and arrays as elements" =>
        derived_structures_round_trip missing_padding_error_names_field
        scalars_bind_to_their_vectors_only vec3_arrays_need_padded_elements;
    limits: "limits of one native driver, in recordings and in the words of its error" =>
        error_names_the_aborted_launch deep_nesting_works_or_is_rejected;
    memory: "memory that is freed and reused, and transfers without a kernel" =>
        reused_memory_is_zeroed zeroing_precedes_any_first_use every_element_size_round_trips;
    native: "kernels in PTX and CUDA C, and libraries that are loaded from files" =>
        ptx_receives_declared_parameters cuda_c_receives_structure_parameter
        blocks_get_declared_shared_memory errors_contain_compiler_messages
        cublas_meets_its_stated_precision cublas_multiplies_f16_and_bf16 cublas_products_are_ordered
        recorded_products_share_workspace_safely;
    parameters: "labels in errors of cached kernels, and Rust structures as immediates" =>
        labels_name_the_source_in_errors immediate_structures_match_rust;
    replays: "recordings, which threads replay" =>
        replays_read_their_own_inputs unwritten_inputs_are_zero
        inputs_are_ordered_with_other_submissions threads_keep_their_inputs;
    slices: "transfers between slices, without a kernel" =>
        batches_accept_slices_and_buffers copies_accept_slices_and_buffers;
    unchecked: "compilation without checks, which is unsafe" =>
        unchecked_kernels_within_bounds_match;
    views: "views of buffers, without a type or with another one" =>
        views_bind_as_their_type untyped_buffers_check_their_type untyped_bytes_fit_structures
        overlapping_views_are_rejected rejects_unaligned_owned_slices;
}

/// Modules without such tests.
const HELPERS: [&str; 3] = ["harness", "not_cases", "programs"];

/// Returns the names of the tests in a source.
fn test_names(source: &'static str) -> Vec<&'static str> {
    let after = source.split("#[test]\n").skip(1);
    let name = |text: &'static str| Some(text.trim_start().strip_prefix("fn ")?.split_once('(')?.0);
    after.filter_map(name).filter(|name| !name.starts_with('$')).collect()
}

#[test]
fn tests_outside_cases_are_listed() {
    for file in RUST_TESTS {
        assert_eq!(test_names(file.source), file.tests, "{}: {}", file.topic, file.reason);
    }
    let lines = include_str!("main.rs").lines();
    let modules = lines.filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
    let mut modules: Vec<&str> = modules.filter(|name| !HELPERS.contains(name)).collect();
    modules.sort_unstable();
    let topics: Vec<&str> = RUST_TESTS.iter().map(|file| file.topic).collect();
    assert_eq!(modules, topics);
}
