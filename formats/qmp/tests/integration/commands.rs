//! Encoding of commands and decoding of results and events.

use proptest::prelude::*;
use serde_json::{Value, json};
use suimon_qmp::{
    BlockNode, Command, MigrationStage, Netdev, QmpEvent, QmpMessage, QmpReader, ReconnectOption,
    RunState, decode_cpu_slots, decode_machine_type, decode_migration, decode_run_state,
};

fn encoded(command: &Command) -> Value {
    let line = command.line(7);
    assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
    assert_eq!(line.last(), Some(&b'\n'));
    let value: Value = serde_json::from_slice(&line).unwrap();
    assert_eq!((&value["execute"], &value["id"]), (&json!(command.name()), &json!(7)));
    value["arguments"].clone()
}

proptest! {
    /// Arbitrary text in a path or name is encoded as one value in one line.
    #[test]
    fn texts_stay_single_json_values(text in any::<String>()) {
        let text = || text.clone();
        let reconnect = ReconnectOption::SecondsKey;
        let chardev = encoded(&Command::ChardevAdd { id: text(), path: text(), reconnect });
        prop_assert_eq!(&chardev["id"], &json!(text()));
        let data = &chardev["backend"]["data"];
        prop_assert_eq!(&data["addr"]["data"]["path"], &json!(text()));
        prop_assert_eq!(&data["reconnect"], &json!(1));
        let stream = Netdev::Stream { id: text(), path: text(), reconnect: ReconnectOption::Never };
        let expected = json!({ "type": "stream", "id": text(), "server": false,
            "addr": { "type": "unix", "path": text() } });
        prop_assert_eq!(encoded(&Command::NetdevAdd(stream)), expected);
        let node = BlockNode::Nbd { name: text(), path: text(), export: text(), reconnect_delay_s: 9 };
        let node = encoded(&Command::BlockdevAdd(node));
        prop_assert_eq!(&node["export"], &json!(text()));
        prop_assert_eq!(&node["server"]["path"], &json!(text()));
    }
}

fn decoded(line: &str) -> QmpMessage {
    let mut reader = QmpReader::new();
    reader.handle_bytes(line.as_bytes());
    reader.handle_bytes(b"\n");
    reader.poll_message().unwrap().unwrap()
}

#[test]
fn events_with_missing_fields_are_decoded() {
    let event =
        decoded(r#"{"event": "DEVICE_DELETED", "data": {"path": "/machine/peripheral/x"}}"#);
    let path = "/machine/peripheral/x".to_owned();
    assert_eq!(event, QmpMessage::Event(QmpEvent::DeviceDeleted { device: None, path }));
    let QmpMessage::Event(QmpEvent::Shutdown(trigger)) = decoded(r#"{"event": "SHUTDOWN"}"#) else {
        panic!("no shutdown");
    };
    assert_eq!((trigger.is_guest_initiated, trigger.reason.as_str()), (false, ""));
    let full = decoded(
        r#"{"event": "BLOCK_IO_ERROR", "data": {"device": "", "node-name": "n-boot", "nospace": true,
            "operation": "write", "action": "stop", "reason": "No space left on device"}}"#
            .replace('\n', " ")
            .as_str(),
    );
    let node = "n-boot".to_owned();
    assert_eq!(
        full,
        QmpMessage::Event(QmpEvent::BlockIoError { node, stops_vm: true, is_out_of_space: true })
    );
    let bare =
        QmpEvent::BlockIoError { node: String::new(), stops_vm: false, is_out_of_space: false };
    assert_eq!(decoded(r#"{"event": "BLOCK_IO_ERROR"}"#), QmpMessage::Event(bare));
    let name = "NIC_RX_FILTER_CHANGED".to_owned();
    let other = decoded(r#"{"event": "NIC_RX_FILTER_CHANGED"}"#);
    assert_eq!(other, QmpMessage::Event(QmpEvent::Other { name }));
}

#[test]
fn results_are_decoded_or_rejected() {
    assert_eq!(
        decode_run_state(&json!({ "status": "guest-panicked" })),
        Ok(RunState::GuestPanicked)
    );
    assert_eq!(decode_run_state(&json!({ "status": "io-error" })), Ok(RunState::IoError));
    let other = RunState::Other("watchdog".to_owned());
    assert_eq!(decode_run_state(&json!({ "status": "watchdog" })), Ok(other));
    decode_run_state(&json!([])).unwrap_err();
    let slot = |core| json!({ "props": { "core-id": core }, "vcpus-count": 1, "type": "x" });
    let slots = decode_cpu_slots(&json!([slot(2), slot(0), slot(1)])).unwrap();
    let cores: Vec<u64> = slots.iter().map(|slot| slot.socket_core_thread[1]).collect();
    assert_eq!(cores, [0, 1, 2], "filled from the first place on");
    decode_cpu_slots(&json!([{ "type": "x" }])).unwrap_err();
    decode_cpu_slots(&Value::Array(vec![slot(0); 5000])).unwrap_err();
}

#[test]
fn migration_results_are_decoded_or_rejected() {
    let stage = |value: Value| decode_migration(&value).map(|read| read.stage);
    assert_eq!(stage(json!({})), Ok(MigrationStage::None));
    assert_eq!(stage(json!({ "status": "setup" })), Ok(MigrationStage::Active));
    assert_eq!(stage(json!({ "status": "pre-switchover" })), Ok(MigrationStage::PreSwitchover));
    assert_eq!(stage(json!({ "status": "cancelling" })), Ok(MigrationStage::Cancelled));
    let failed = json!({ "status": "failed", "error-desc": "x".repeat(9000) });
    assert_eq!(stage(failed), Ok(MigrationStage::Failed("x".repeat(500))));
    let wordless = MigrationStage::Failed("QEMU reported no reason".to_owned());
    assert_eq!(stage(json!({ "status": "failed" })), Ok(wordless));
    for nonsense in [json!([]), json!({ "status": 1 }), json!({ "status": "colo" })] {
        stage(nonsense).unwrap_err();
    }
    let ram = json!({ "transferred": 5, "remaining": -1 });
    let read = decode_migration(&json!({ "status": "active", "ram": ram })).unwrap();
    assert_eq!((read.bytes_sent, read.remaining_bytes), (5, 0));

    assert_eq!(decode_machine_type(&json!("pc-q35-7.2-machine")).unwrap(), "pc-q35-7.2");
    for nonsense in ["-machine", "pc", "q35,accel=tcg-machine"] {
        decode_machine_type(&json!(nonsense)).unwrap_err();
    }
}

#[test]
fn migration_commands_match_the_schema() {
    use suimon_qmp::MigrationCapability::{PauseBeforeSwitchover, ReturnPath};
    let both = Command::MigrateSetCapabilities(vec![ReturnPath, PauseBeforeSwitchover]);
    let capability = |name: &str| json!({ "capability": name, "state": true });
    let capabilities = json!([capability("return-path"), capability("pause-before-switchover")]);
    assert_eq!(encoded(&both), json!({ "capabilities": capabilities }));
    assert_eq!(encoded(&Command::Migrate { fd_name: "line" }), json!({ "uri": "fd:line" }));
    assert_eq!(encoded(&Command::MigrateContinue), json!({ "state": "pre-switchover" }));
    assert_eq!(encoded(&Command::GetFd { name: "line" }), json!({ "fdname": "line" }));
    assert_eq!(encoded(&Command::MigrateCancel), Value::Null);
}
