use clap::Parser;
use serde_json::Value;
use suimon_contract::{DeviceFeatureStatus, OffloadPerformer};

use super::*;

#[derive(Parser)]
struct Offload {
    #[command(subcommand)]
    verb: OffloadVerb,
}

fn switches(args: &[&str]) -> Result<Value, Failure> {
    let parsed = Offload::parse_from(["x", "set", "wan"].iter().chain(args));
    let OffloadVerb::Set(flags) = parsed.verb else { panic!("another verb") };
    settings::merge_patch(&flags.switches).map(Value::Object)
}

fn usage_error(args: &[&str]) -> String {
    match Offload::try_parse_from(["x", "set"].iter().chain(args)) {
        Ok(_) => panic!("accepted: {args:?}"),
        Err(error) => error.to_string(),
    }
}

fn port(kind: PortKind, name: &str, offloads: Vec<OffloadStatus>) -> PortOffloads {
    let device = (kind == PortKind::Uplink).then(DeviceFeaturesStatus::default);
    PortOffloads { kind, name: name.parse().unwrap(), offloads, device }
}

fn offload(
    name: &str,
    supported: Option<bool>,
    performer: OffloadPerformer,
    reason: &str,
) -> OffloadStatus {
    let effective = performer != OffloadPerformer::Software;
    let (name, reason) = (name.to_owned(), reason.to_owned());
    OffloadStatus { name, supported, enabled: effective, effective, performer, reason }
}

#[test]
fn set_sends_only_the_named_keys() {
    assert_eq!(
        switches(&["segmentation=off", "tx_checksum=default", "receive_coalescing=on"]).unwrap(),
        serde_json::json!({
            "segmentation": false, "tx_checksum": null, "receive_coalescing": true
        })
    );
    let repeated = switches(&["segmentation=off", "segmentation=on"]).unwrap_err();
    assert_eq!(
        (repeated.exit_code(), repeated.to_string()),
        (2, "`segmentation` is given twice; give it once".to_owned())
    );
}

#[test]
fn invalid_names_are_reported_with_the_valid_ones() {
    let keys = "tx_checksum, rx_checksum, tx_ip_checksum, rx_ip_checksum, segmentation, \
                receive_coalescing";
    let message = usage_error(&["wan", "tso=off"]);
    assert!(message.contains(&format!("no key `tso` exists; the keys are {keys}")), "{message}");
    let message = usage_error(&["wan", "segmentation"]);
    assert!(message.contains("KEY=on, KEY=off or KEY=default; the keys are tx_"), "{message}");
    let message = usage_error(&["wan", "segmentation=no"]);
    assert!(message.contains("`segmentation` must be on, off or default, not `no`"), "{message}");
    let message = usage_error(&["port:lan", "segmentation=off"]);
    assert!(message.contains("use nic:NAME, uplink:NAME or switch:NAME"), "{message}");
    assert!(usage_error(&["../etc", "segmentation=off"]).contains("not a valid name"));
    assert!(usage_error(&["wan"]).contains("KEY=on|off|default"));
}

#[test]
fn a_port_is_found_by_its_name_or_by_kind_and_name() {
    let ports = || {
        vec![
            port(PortKind::Nic, "web", Vec::new()),
            port(PortKind::Nic, "both", Vec::new()),
            port(PortKind::Uplink, "both", Vec::new()),
            port(PortKind::Switch, "lab", Vec::new()),
        ]
    };
    let find = |names: &[&str]| {
        let names: Vec<PortName> = names.iter().map(|name| name.parse().unwrap()).collect();
        chosen(ports(), &names)
    };
    assert_eq!(find(&[]).unwrap(), ports());
    let ports = find(&["uplink:both", "web", "nic:web"]).unwrap();
    let found_ports: Vec<_> = ports.iter().map(|port| (port.kind, port.name.as_str())).collect();
    assert_eq!(
        found_ports,
        [(PortKind::Uplink, "both"), (PortKind::Nic, "web"), (PortKind::Nic, "web")]
    );
    assert_eq!(find(&["lab"]).unwrap(), find(&["switch:lab"]).unwrap());
    let unclear = find(&["both"]).unwrap_err();
    assert_eq!(unclear.exit_code(), 2);
    assert!(unclear.to_string().contains("use nic:both or uplink:both"), "{unclear}");
    for missing in ["wan", "uplink:web", "switch:web"] {
        let failure = find(&[missing]).unwrap_err();
        assert_eq!(failure.exit_code(), 4, "{failure}");
        let Failure::Refused(errors) = failure else { panic!("{failure}") };
        let message = &errors[0].message;
        assert!(message.contains(&format!("no NIC, uplink or host NIC `{missing}`")), "{message}");
        assert!(message.ends_with("the host has web, nic:both, uplink:both, lab"), "{message}");
    }
    let nothing = chosen(Vec::new(), &["wan".parse().unwrap()]).unwrap_err();
    let Failure::Refused(errors) = nothing else { panic!("{nothing}") };
    assert!(errors[0].message.ends_with("the host has none"), "{errors:?}");
}

#[test]
fn offloads_are_shown_port_by_port() {
    let checksum = offload("tx_checksum", None, OffloadPerformer::Guest, "on");
    let large = "tx_tcp4_segmentation";
    let by_device =
        offload(large, Some(true), OffloadPerformer::Nic, "tx-tcp-segmentation of eth0 is on");
    let by_host = offload("rx_checksum", Some(true), OffloadPerformer::Guest, "on");
    let by_us =
        offload(large, Some(false), OffloadPerformer::Software, "switched off by segmentation");
    let mut ports = vec![
        port(PortKind::Nic, "web", vec![checksum]),
        port(PortKind::Nic, "wan", vec![by_us]),
        port(PortKind::Uplink, "wan", vec![by_device]),
        port(PortKind::Switch, "lab", vec![by_host]),
    ];
    insta::assert_snapshot!(text(&ports), @r"
    PORT        OFFLOAD               SUPPORTED  ENABLED  USED  BY        REASON
    web         tx_checksum           –          yes      yes   guest     on
    nic:wan     tx_tcp4_segmentation  no         no       no    software  switched off by segmentation
    uplink:wan  tx_tcp4_segmentation  yes        yes      yes   device    tx-tcp-segmentation of eth0 is on
    lab         rx_checksum           yes        yes      yes   guest     on
    ");
    assert_eq!(serde_json::to_value(&ports[3]).unwrap()["kind"], "switch");
    let name = "tx-tcp-segmentation".to_owned();
    let features = vec![DeviceFeatureStatus { name, state: "on".to_owned() }];
    ports[2].device = Some(DeviceFeaturesStatus { unknown_reason: None, features });
    insta::assert_snapshot!(serde_json::to_string_pretty(&ports[2]).unwrap(), @r#"
    {
      "kind": "uplink",
      "name": "wan",
      "offloads": [
        {
          "name": "tx_tcp4_segmentation",
          "supported": true,
          "enabled": true,
          "effective": true,
          "by": "nic",
          "reason": "tx-tcp-segmentation of eth0 is on"
        }
      ],
      "device": {
        "features": [
          {
            "name": "tx-tcp-segmentation",
            "state": "on"
          }
        ]
      }
    }
    "#);
}
