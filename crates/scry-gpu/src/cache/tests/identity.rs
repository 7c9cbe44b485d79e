//! Tests of entries of another device, driver, version or kernel.
//! `fault_N` in a test name is the number in `docs/faults.md`.

use super::*;

/// Asserts that an entry of one identity is not found under the other, in either folder.
#[track_caller]
fn assert_separate(a: &DeviceIdentity, b: &DeviceIdentity) {
    let folder = temporary_folder();
    let open = |identity| DiskCache::open_in(folder.path(), identity, 1 << 20).unwrap();
    let (first, second) = (open(a), open(b));
    let key = key("@compute fn main() {}");
    first.store(&key, PLAIN, b"payload");
    assert!(first.load(&key, PLAIN).is_some());
    assert_eq!(second.load(&key, PLAIN), None);
    // As if both had the same folder and file name.
    let from = first.path(&format::full_key(&a.key_part(), &key, PLAIN), PLAIN.part.kind());
    let to = second.path(&format::full_key(&b.key_part(), &key, PLAIN), PLAIN.part.kind());
    if from != to {
        std::fs::copy(from, to).unwrap();
        assert_eq!(second.load(&key, PLAIN), None);
    }
}

#[test]
fn fault_40_each_identity_field_matters() {
    let ours = device_identity();
    let changes: [fn(&mut DeviceInfo); 9] = [
        |info| info.vendor_id += 1,
        |info| info.device_id += 1,
        |info| info.uuid = Some([8; 16]),
        |info| info.driver_uuid = Some([8; 16]),
        |info| info.driver.push('4'),
        |info| info.api_version.push('4'),
        |info| info.name.push('2'),
        |info| info.backend = BackendKind::Cuda,
        |info| info.subgroup_size = 64,
    ];
    for change in changes {
        let mut info = device();
        change(&mut info);
        assert_separate(&ours, &DeviceIdentity::from_info(&info).unwrap());
    }
}

#[test]
fn fault_40_other_crate_versions_miss() {
    let other = DeviceIdentity::with_version(&device(), "0.0.0").unwrap();
    assert_separate(&device_identity(), &other);
}

#[test]
fn fault_40_software_devices_include_the_host() {
    let mut info = device();
    info.kind = DeviceKind::Software;
    assert_separate(&device_identity(), &DeviceIdentity::from_info(&info).unwrap());
}

#[test]
fn fault_40_unidentified_drivers_have_no_cache() {
    let mut info = device();
    info.driver_uuid = None;
    assert!(DeviceIdentity::from_info(&info).is_none());
    let mut info = device();
    info.uuid = None;
    assert!(DeviceIdentity::from_info(&info).is_none());
}

#[test]
fn fault_40_each_key_field_matters() {
    let folder = temporary_folder();
    let cache = open(folder.path());
    let original = key("@compute fn main() {}");
    cache.store(&original, PLAIN, b"payload");
    assert_eq!(cache.load(&original, LINEARISED), None);
    assert_eq!(cache.load(&original, INDIRECT), None);
    let changes: [fn(&mut KernelKey); 11] = [
        |key| key.source.push(' '),
        |key| key.entry = None,
        |key| key.entry = Some(String::new()),
        |key| key.entry = Some("other".to_owned()),
        |key| key.checked = false,
        |key| key.overrides.clear(),
        |key| key.overrides[0].0.push('S'),
        |key| key.overrides[0].1 = ValueBits::Number(16.5f64.to_bits()),
        |key| key.overrides[0].1 = ValueBits::Bool(true),
        |key| key.overrides.push(("A".to_owned(), ValueBits::Number(0))),
        |key| key.native = Some(native(Language::Ptx)),
    ];
    for change in changes {
        let mut other = original.clone();
        change(&mut other);
        assert_eq!(cache.load(&other, PLAIN), None, "{other:?}");
    }
    assert!(cache.load(&original, PLAIN).is_some());
}

#[test]
fn other_generated_code_is_a_miss() {
    let folder = temporary_folder();
    let cache = open(folder.path());
    let key = key("@compute fn main() {}");
    cache.store(&key, PLAIN, b"payload");
    // As if the generator had changed in the same version of the crate.
    for other in [&b"Generated"[..], b"generate", b"generated ", b""] {
        let changed = Variant { part: Part::Compiled(other), ..PLAIN };
        assert_eq!(cache.load(&key, changed), None);
        cache.store(&key, changed, other.get(..3).unwrap_or(b"new"));
    }
    assert_eq!(cache.load(&key, PLAIN).as_deref(), Some(&b"payload"[..]));
    let last = cache.load(&key, Variant { part: Part::Compiled(b""), ..PLAIN });
    assert_eq!(last.as_deref(), Some(&b"new"[..]));
}

#[test]
fn field_boundaries_are_part_of_keys() {
    let mut a = key("bc");
    a.entry = Some("a".to_owned());
    let mut b = key("c");
    b.entry = Some("ab".to_owned());
    let full = |key| format::full_key(b"identity", key, PLAIN);
    assert_ne!(full(&a), full(&b));
}

#[test]
fn folder_name_identifies_device_and_driver() {
    let name = device_identity().folder_name();
    assert!(name.starts_with("10de-2335-"), "{name}");
    let mut info = device();
    info.driver_uuid = Some([1; 16]);
    assert_ne!(DeviceIdentity::from_info(&info).unwrap().folder_name(), name);
    assert_eq!(device_identity().folder_name(), name);
}

/// The expected values are from an independent implementation of SipHash's description.
#[test]
fn hash_is_siphash_on_every_machine() {
    let nothing = 0x838f_990e_f816_850c_babf_e6ab_e9f4_96c3;
    assert_eq!(format::hash(b""), nothing);
    assert_eq!(format::hash(b"scry"), 0x28f2_f1bb_a24b_6ce0_a331_52c8_a593_d77a);
}
