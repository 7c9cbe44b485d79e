//! The list of all tests.

use crate::{Cases, Test, cases};

/// Calls a macro with the name of each test, by topic, so that a program can declare a test of its
/// harness for each.
#[macro_export]
macro_rules! each_test {
    ($then:ident) => {
        $then! {
            arithmetic: unsigned_arithmetic signed_arithmetic assignment_operators
                short_circuits_skip_the_second_operand;
            between_types: integers_to_every_type floats_to_every_type bits_as_every_type
                truth_values;
            bits: counting fields bit_fields_of_uniform_words bit_positions_of_possible_zeros
                packed_bytes packed_fractions unpacked_fractions packed_halves;
            control: loops nested_loops switches branches_and_early_returns
                pointers_to_variables_and_their_parts functions_accept_every_value_type
                side_effects_before_loop_tests;
            conversions: floats_to_integers_truncate_and_clamp nan_converts_to_any_integer
                integers_to_floats booleans reinterpretation_keeps_every_bit;
            divergence: continuing_blocks_see_body_variables switches_in_loops_in_switches
                returns_from_nested_callees arrays_written_on_different_ways;
            exact_floats: arithmetic_of_every_width comparisons_of_every_width
                exact_arithmetic_in_every_width;
            floats: exact_operations comparisons remainder_has_sign_of_dividend parts_of_floats
                bits_of_floats_pass_through_buffers;
            integers: arithmetic_of_every_width comparisons_of_every_width bits_of_every_width;
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
