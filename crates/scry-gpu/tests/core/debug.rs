//! Tests of the `Debug` output of public types, and of the fields of shader errors.

use scry_gpu::{GpuError, Location, ShaderErrorKind};
use scry_test_support::{STEP, null};

#[test]
fn debug_shows_device_label_and_length() {
    let gpu = null();
    let buffer = gpu.upload(&[1u32, 2, 3, 4]).unwrap().with_label("x");
    let slice = buffer.slice(1..3).unwrap();
    assert_eq!(
        format!("{slice:?}"),
        "Slice { label: \"x\", start_byte: 4, len: 2, element: \"u32\", device: \"null device\" }"
    );
    let mut batch = gpu.batch();
    batch.fill(&buffer, 7).unwrap();
    let download = batch.download(&buffer).unwrap();
    assert_eq!(format!("{batch:?}"), "Batch { device: \"null device\", commands: 2 }");
    assert_eq!(
        format!("{download:?}"),
        "Download { len: 4, element: \"u32\", device: \"null device\" }"
    );
    let recording = batch.record().unwrap();
    assert_eq!(format!("{recording:?}"), "Recording { device: \"null device\", commands: 2 }");
    let ticket = recording.replay().unwrap();
    let text = format!("{ticket:?}");
    assert!(text.starts_with("Ticket { device: \"null device\", submission: Some("), "{text}");
    let empty = gpu.batch().submit_async().unwrap();
    assert_eq!(format!("{empty:?}"), "Ticket { device: \"null device\", submission: None }");
}

#[test]
fn shader_errors_expose_their_location() {
    let error = null().compile(&STEP.replace("1u", "one")).unwrap_err();
    let GpuError::Shader(error) = error else { panic!("{error}") };
    assert_eq!(error.kind, ShaderErrorKind::Parse);
    let Some(Location { line, .. }) = error.location else { panic!("{error}") };
    assert_eq!(line, 8);
}
