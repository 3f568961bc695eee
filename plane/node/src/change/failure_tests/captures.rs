//! Bounds and ends of captures.

use super::*;

#[test]
fn one_capture_of_a_port_at_a_time() {
    let harness = harness_with_two();
    let key = PortKey::Nic(name("web"));
    let capture = harness.node.capture(&key, Default::default()).unwrap();
    assert!(harness.node.capture(&key, Default::default()).is_err());
    let id = capture.operation().unwrap().id;
    let mut capture = capture;
    let no_wait = std::time::Duration::ZERO;
    assert_eq!(capture.read(no_wait, 1, &mut |_| {}), Some(0));
    harness.node.cancel_operation(id);
    assert_eq!(capture.read(no_wait, 1, &mut |_| {}), None);
    drop(capture);
    assert_eq!(harness.node.operation(id).unwrap().state, OperationState::Cancelled);
    harness.wait_events(3011, 1);
    harness.wait_events(3012, 1);
    // A capture does not prevent the deletion of its port.
    let mut capture = harness.node.capture(&key, Default::default()).unwrap();
    harness.change(Edit::Nic(ResourceEdit::Delete(name("web"))));
    assert_eq!(capture.read(no_wait, 1, &mut |_| {}), None);
}

/// Between two reads, the NIC is deleted and another one of its name is created.
#[test]
fn a_capture_ends_with_its_port_and_not_with_its_name() {
    let harness = harness_with_two();
    let key = PortKey::Nic(name("web"));
    let mut capture = harness.node.capture(&key, Default::default()).unwrap();
    let no_wait = std::time::Duration::ZERO;
    assert_eq!(capture.read(no_wait, 1, &mut |_| {}), Some(0));
    harness.change(Edit::Nic(ResourceEdit::Delete(name("web"))));
    harness.apply_ok(&host(TWO));
    assert_eq!(capture.read(no_wait, 1, &mut |_| {}), None);
    let id = capture.operation().unwrap().id;
    drop(capture);
    let operation = harness.node.operation(id).unwrap();
    assert_eq!(operation.error.unwrap().code, ErrorCode::NotFound);
    let mut next = harness.node.capture(&key, Default::default()).unwrap();
    assert_eq!(next.read(no_wait, 1, &mut |_| {}), Some(0));
}

#[test]
fn captures_beyond_the_limit_are_refused_until_one_ends() {
    let nic = |nth: usize| {
        format!(
            "[[nic]]\nname = \"n{nth}\"\nswitch = \"lan\"\nbackend = \"tap\"\ndevice = \"n{nth}\"\n"
        )
    };
    let nics: String = (0..=CAPTURES_MAX).map(nic).collect();
    let harness = Harness::new();
    harness.apply_ok(&host(&format!("[[switch]]\nname = \"lan\"\nkind = \"private\"\n{nics}")));
    let begin = |nth: usize| {
        harness.node.capture(&PortKey::Nic(name(&format!("n{nth}"))), Default::default())
    };
    let mut captures: Vec<_> = (0..CAPTURES_MAX).map(|nth| begin(nth).unwrap()).collect();
    let error = begin(CAPTURES_MAX).map(drop).unwrap_err();
    assert_eq!(error.code, ErrorCode::Conflict);
    assert!(error.message.contains("8 captures"), "{error:?}");
    captures.pop();
    begin(CAPTURES_MAX).unwrap();
}
