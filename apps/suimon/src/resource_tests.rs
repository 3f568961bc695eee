use clap::Parser;
use serde_json::json;
use suimon_contract::{NicBackend, NicConfig, VlanRange};

use super::*;

#[derive(Parser)]
struct AddNic {
    #[command(flatten)]
    add: Add<NicConfig>,
}

#[derive(Parser)]
struct SetNic {
    #[command(flatten)]
    set: Set<NicConfig>,
}

fn add(args: &[&str]) -> NicConfig {
    let args = ["x", "web", "--switch", "lan"].iter().chain(args);
    AddNic::parse_from(args).add.resource().unwrap()
}

fn patch(args: &[&str]) -> Value {
    let args = ["x", "web"].iter().chain(args);
    Value::Object(SetNic::parse_from(args).set.patch().unwrap())
}

#[test]
fn every_key_has_a_flag() {
    let nic = add(&[
        "--backend=tap",
        "--device=t0",
        "--netns=blue",
        "--mac=52:54:00:12:34:56",
        "--vlan=10",
        "--trunk=20,30-39",
        "--queues=2",
        "--mtu=9000",
        "--mac-spoofing",
        "--isolated=false",
        "--storm-limit-fps=5",
        "--bandwidth-max-bps=8000",
        "--learned-max=7",
        "--offload-segmentation=false",
        "--offload-tx-checksum",
    ]);
    assert_eq!(nic.backend, NicBackend::Tap);
    assert_eq!(nic.trunk.unwrap().0.last().map(|range: &VlanRange| range.last().get()), Some(39));
    assert!(nic.mac_spoofing && !nic.isolated);
    assert!(!nic.offload.segmentation && nic.offload.tx_checksum);
    assert_eq!((nic.queues, nic.mtu, nic.learned_max), (2, 9000, 7));

    let vm = add(&["--backend", "vhost-user", "--socket", "/s", "--mode", "client"]);
    assert_eq!(vm.socket.unwrap().to_str(), Some("/s"));
}

#[test]
fn set_sends_only_what_was_named() {
    assert_eq!(patch(&["--vlan", "20"]), json!({"vlan": 20}));
    assert_eq!(
        patch(&[
            "--offload-segmentation=true",
            "--unset",
            "vlan",
            "--unset",
            "offload.tx_checksum"
        ]),
        json!({"offload": {"segmentation": true, "tx_checksum": null}, "vlan": null})
    );
    let nothing = SetNic::parse_from(["x", "web"]).set.patch().unwrap_err();
    assert_eq!(nothing.code(), 2);
}

#[test]
fn addresses_are_a_table() {
    let address = |vlan, fixed, age_s| AddressStatus {
        mac: "52:54:00:12:34:56".parse().unwrap(),
        vlan,
        port: "web".to_owned(),
        fixed,
        age_s,
    };
    let addresses = [address(Some(10), false, Some(75)), address(None, true, None)];
    insta::assert_snapshot!(address_table(&addresses).render(), @r"
    ADDRESS            VLAN  PORT         AGE
    52:54:00:12:34:56    10  web   1 min 15 s
    52:54:00:12:34:56     –  web        fixed
    ");
}
