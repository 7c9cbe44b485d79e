//! The list of all tests.

use crate::{Cases, Test, cases};

/// Calls the macro `$then` with the names of all tests, by topic, so that a test program can
/// declare a `#[test]` for each.
#[macro_export]
macro_rules! each_test {
    ($then:ident) => {
        $then! {
            accuracy: operators rounding_and_choices parts_of_floats powers_and_roots trigonometry
                hyperbolic_functions vectors interpolation rounding_to_f16
                f64_operators_and_functions f64_functions_missing_in_spirv;
            arithmetic: unsigned_arithmetic signed_arithmetic assignment_operators
                short_circuits_skip_the_second_operand;
            atomics: every_operation_in_buffers every_operation_in_workgroup_memory
                every_operation_on_one_cell compare_exchanges floats_in_buffers
                atomics_keep_neighbouring_words;
            barriers: sums_of_workgroups_of_many_sizes barriers_order_first_and_last_invocation
                barriers_within_uniform_control_flow uniform_loads_of_every_type
                workgroups_after_early_returns rejects_barriers_in_divergent_control_flow;
            between_types: integers_to_every_type floats_to_every_type bitcasts_to_every_type
                bool_operations;
            bindings: uniform_scalars_arrays_and_matrices groups_and_numbers_with_gaps many_bindings
                rejects_one_binding_too_many slices_as_bindings rejects_unaligned_slices
                rejects_bindings_overlapping_written_ones rejects_wrong_binding_counts_and_sizes;
            bits: bit_counts_and_positions bit_fields bit_fields_of_uniform_words
                bit_positions_of_possible_zeros packed_bytes packing_unorm_and_snorm
                unpacking_unorm_and_snorm packed_f16s;
            bounds: fault_21_runtime_arrays_of_scalars fault_21_runtime_arrays_of_vectors
                fault_21_runtime_arrays_of_structures_and_arrays
                fault_22_fixed_arrays_and_vectors_in_buffers fault_22_matrices_in_buffers
                fault_22_variables_of_every_address_space fault_22_matrices_in_variables
                fault_22_atomics_in_structures_and_nested_arrays
                fault_22_constant_indices_past_a_runtime_array fault_21_other_widths
                fault_21_counters_set_from_stale_copies;
            bounds_corpus: fault_21_runtime_array fault_21_runtime_array_in_a_structure
                fault_22_components_in_buffers fault_22_fixed_arrays_in_every_address_space
                fault_22_values_indexed_at_run_time fault_22_pointers_to_parts_as_arguments
                fault_22_atomics fault_13_arithmetic;
            bounds_kernels: fault_21_uniform_arrays fault_17_partial_elements_are_unchanged
                fault_21_many_invocations_past_the_end fault_21_arrays_of_immediates
                fault_21_linearised_launches;
            control: loops nested_loops switches branches_and_early_returns
                pointers_to_variables_and_their_parts functions_accept_every_value_type
                side_effects_before_loop_conditions;
            conversions: floats_to_integers_truncate_and_clamp nan_converts_to_any_integer
                integers_to_floats booleans bitcasts_keep_every_bit;
            cooperation: scan_in_workgroup_memory transpose_through_workgroup_memory
                storage_barriers_and_uniform_loads shared_counter_is_exact
                exchange_and_compare_exchange atomics_in_workgroup_memory;
            cooperative_matrices: products_in_every_type_and_layout tiles_of_large_matrices
                component_wise_arithmetic missing_lanes_count_as_zero
                out_of_bounds_accesses_stay_in_buffers rejects_invalid_matrix_products;
            cooperative_matrix_edges: out_of_bounds_matrix_elements_load_zero
                out_of_bounds_matrix_stores_are_dropped;
            divergence: continuing_blocks_see_body_variables switches_in_loops_in_switches
                returns_from_nested_callees arrays_written_on_different_paths;
            driver_faults: negated_f16_vectors_of_a_uniform
                scaled_matrices_with_subnormal_elements;
            exact_floats: arithmetic_of_every_width comparisons_of_every_width
                fma_dot_division_of_every_width;
            features: half_precision_floats integers_of_16_bits_wrap integers_of_64_bits
                double_precision_floats f64_to_f16_rounds_once atomic_floats
                atomic_integers_of_64_bits subgroup_operations rejects_workgroups_beyond_limits;
            floats: exact_operations comparisons remainder_has_sign_of_dividend parts_of_floats
                bits_of_floats_pass_through_buffers;
            indirect: every_invocation_runs_exactly_once invalid_counts_run_nothing
                workgroup_memory_with_early_returns counts_may_share_a_read_buffer
                immediates_and_uniforms_with_counts;
            integers: arithmetic_of_every_width comparisons_of_every_width bits_of_every_width;
            launches: each_invocation_exactly_once every_way_to_set_the_size zero_axis_runs_nothing
                linearised_launches_keep_every_id linearised_launches_support_workgroup_memory
                rejects_more_invocations_than_u32_counts;
            layouts: vec3_is_aligned_like_vec4 nested_arrays_and_structures attributes_move_members
                member_alignment_aligns_the_structure matrix_columns_have_vector_stride;
            limits: long_loops_finish_or_fail divergent_loops_share_one_limit;
            matrices: every_shape_of_every_type;
            memory: variables_are_zero_initialised loop_variables_are_reinitialised;
            memory_types: workgroup_arrays_of_every_type local_arrays_of_every_type
                variables_of_every_type vectors_in_storage_of_every_type
                uniform_buffers_of_every_type immediates_of_32_and_64_bits bools_in_memory
                bools_in_workgroup_memory;
            parameters: overrides_by_name_and_by_id override_errors_name_their_cause
                scalar_immediates rejects_undeclared_immediates
                full_immediates_with_linearised_launch;
            partial_elements: lengths_are_rounded_down rejects_bindings_below_one_element
                trailing_bytes_may_be_bound_elsewhere;
            subgroups: reductions_and_scans broadcasts_and_shuffles bitwise_reductions
                votes_and_ballots lanes_and_subgroups_are_numbered racing_conditions_never_hang;
            vectors: constructors_and_swizzles component_wise_operations geometry
                matrix_products_of_every_shape matrix_by_matrix matrix_arithmetic
                integer_and_boolean_vectors;
        }
    };
}

macro_rules! list {
    ($($topic:ident: $($name:ident)+;)+) => {
        vec![$($(Test {
            topic: stringify!($topic),
            name: stringify!($name),
            cases: |gpu| Cases::from(cases::$topic::$name(gpu)),
        }),+),+]
    };
}

/// Returns all tests, by topic.
pub fn tests() -> Vec<Test> {
    each_test!(list)
}

/// Returns the test with a topic and a name.
pub fn find(topic: &str, name: &str) -> Option<Test> {
    tests().into_iter().find(|test| test.topic == topic && test.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        let names: BTreeSet<_> = tests().iter().map(|test| (test.topic, test.name)).collect();
        assert_eq!(names.len(), tests().len());
        assert!(names.into_iter().all(|(topic, name)| find(topic, name).is_some()));
        assert!(find("arithmetic", "no such test").is_none());
    }
}
