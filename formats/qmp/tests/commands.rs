//! What QEMU is told, and what it says that has a meaning.

use proptest::prelude::*;
use serde_json::{Value, json};
use suimon_qmp::{
    BlockNode, Command, Event, Message, Netdev, Reader, Reconnect, RunState, cpu_slots, run_state,
};

fn told(command: &Command) -> Value {
    let line = command.line(7);
    assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
    assert_eq!(line.last(), Some(&b'\n'));
    let value: Value = serde_json::from_slice(&line).unwrap();
    assert_eq!((&value["execute"], &value["id"]), (&json!(command.name()), &json!(7)));
    value["arguments"].clone()
}

proptest! {
    /// Whatever a path or a name has in it, it is one value of one line.
    #[test]
    fn texts_stay_in_their_places(text in any::<String>()) {
        let text = || text.clone();
        let reconnect = Reconnect::Second;
        let chardev = told(&Command::ChardevAdd { id: text(), path: text(), reconnect });
        prop_assert_eq!(&chardev["id"], &json!(text()));
        let data = &chardev["backend"]["data"];
        prop_assert_eq!(&data["addr"]["data"]["path"], &json!(text()));
        prop_assert_eq!(&data["reconnect"], &json!(1));
        let stream = Netdev::Stream { id: text(), path: text(), reconnect: Reconnect::Never };
        let expected = json!({ "type": "stream", "id": text(), "server": false,
            "addr": { "type": "unix", "path": text() } });
        prop_assert_eq!(told(&Command::NetdevAdd(stream)), expected);
        let node = BlockNode::Nbd { name: text(), path: text(), export: text(), reconnect_delay: 9 };
        let node = told(&Command::BlockdevAdd(node));
        prop_assert_eq!(&node["export"], &json!(text()));
        prop_assert_eq!(&node["server"]["path"], &json!(text()));
    }
}

fn heard(line: &str) -> Message {
    let mut reader = Reader::new();
    reader.handle_bytes(line.as_bytes());
    reader.handle_bytes(b"\n");
    reader.poll_message().unwrap().unwrap()
}

#[test]
fn events_that_lack_something_are_events_all_the_same() {
    let gone = heard(r#"{"event": "DEVICE_DELETED", "data": {"path": "/machine/peripheral/x"}}"#);
    let path = "/machine/peripheral/x".to_owned();
    assert_eq!(gone, Message::Event(Event::DeviceDeleted { device: None, path }));
    let Message::Event(Event::Shutdown(trigger)) = heard(r#"{"event": "SHUTDOWN"}"#) else {
        panic!("no shutdown");
    };
    assert_eq!((trigger.is_guest, trigger.reason.as_str()), (false, ""));
    let name = "NIC_RX_FILTER_CHANGED".to_owned();
    let other = heard(r#"{"event": "NIC_RX_FILTER_CHANGED"}"#);
    assert_eq!(other, Message::Event(Event::Other { name }));
}

#[test]
fn answers_are_read_or_refused() {
    assert_eq!(run_state(&json!({ "status": "guest-panicked" })), Ok(RunState::GuestPanicked));
    let other = RunState::Other("io-error".to_owned());
    assert_eq!(run_state(&json!({ "status": "io-error" })), Ok(other));
    run_state(&json!([])).unwrap_err();
    let slot = |core| json!({ "props": { "core-id": core }, "vcpus-count": 1, "type": "x" });
    let slots = cpu_slots(&json!([slot(2), slot(0), slot(1)])).unwrap();
    let cores: Vec<u64> = slots.iter().map(|slot| slot.place[1]).collect();
    assert_eq!(cores, [0, 1, 2], "filled from the first place on");
    cpu_slots(&json!([{ "type": "x" }])).unwrap_err();
    cpu_slots(&Value::Array(vec![slot(0); 5000])).unwrap_err();
}
