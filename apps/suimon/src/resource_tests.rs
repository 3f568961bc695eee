use clap::Parser;
use serde_json::json;
use suimon_contract::{
    AddressStatus, DiskConfig, LacpTimer, NicBackend, NicConfig, TeamAlgorithm, TeamConfig,
    TeamMode, VlanRange, VmqMode, parse_toml,
};

use super::*;

#[derive(Parser)]
struct AddNic {
    #[command(flatten)]
    add: AddFlags<NicConfig>,
}

#[derive(Parser)]
struct SetNic {
    #[command(flatten)]
    set: SetFlags<NicConfig>,
}

#[derive(Parser)]
struct Team {
    #[command(subcommand)]
    verb: TeamVerb,
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
    assert_eq!((nic.queues, nic.mtu, nic.learned_macs_max), (2, 9000, 7));

    let vm = add(&["--backend", "vhost-user", "--socket", "/s", "--mode", "client"]);
    assert_eq!(vm.socket.unwrap().to_str(), Some("/s"));
}

#[test]
fn every_key_of_a_team_has_a_flag() {
    let team_from = |args: &[&str]| {
        let args = ["x", "add", "both", "--members=left, right"].iter().chain(args);
        match Team::parse_from(args).verb {
            TeamVerb::Add(add) => add.resource().unwrap(),
            other => panic!("another verb: {other:?}"),
        }
    };
    let team: TeamConfig = team_from(&[
        "--mode=lacp",
        "--algorithm=transport-ports",
        "--lacp-timer=fast",
        "--lacp-active=false",
        "--lacp-system-priority=1",
        "--min-links=2",
        "--vmq-enabled",
        "--vmq-mode=static",
        "--vmq-base-worker=1",
        "--vmq-max-workers=2",
        "--vmq-max-worker-number=5",
        "--vmq-numa-node=0",
    ]);
    assert_eq!(team.members.iter().map(Name::as_str).collect::<Vec<_>>(), ["left", "right"]);
    assert_eq!((team.mode, team.algorithm), (TeamMode::Lacp, TeamAlgorithm::TransportPorts));
    let lacp = team.lacp().unwrap();
    assert_eq!((lacp.timer, lacp.active, lacp.system_priority), (LacpTimer::Fast, false, 1));
    assert_eq!((team.min_links, team.vmq.enabled, team.vmq.mode), (2, true, VmqMode::Static));
    let workers = (team.vmq.base_worker, team.vmq.max_worker_number);
    assert_eq!((workers, team.vmq.max_workers), ((Some(1), Some(5)), 2));
    assert_eq!(team.vmq.numa_node, Some(0));

    let spare = team_from(&["--mode=switch-independent", "--primary=left", "--standby=right"]);
    let roles = [spare.primary, spare.standby].map(|name| name.map(|name| name.to_string()));
    assert_eq!(roles, [Some("left".to_owned()), Some("right".to_owned())]);
}

#[derive(Parser)]
struct AddDisk {
    #[command(flatten)]
    add: AddFlags<DiskConfig>,
}

#[test]
fn every_key_of_a_disk_has_a_flag_and_tables_only_if_specified() {
    let disk_from = |args: &[&str]| {
        let args = ["x", "web", "--store=fast", "--format=vhdx"].iter().chain(args);
        AddDisk::parse_from(args).add.resource()
    };
    let disk = disk_from(&[
        "--file=vms/web.vhdx",
        "--kind=differencing",
        "--size-bytes=10GiB",
        "--parent=base.vhdx",
        "--read-only",
        "--serial=S1",
        "--logical-sector=4096",
        "--physical-sector=4096",
        "--block-bytes=1 MiB",
        "--qos-min-iops=1",
        "--qos-max-iops=3",
        "--qos-max-bytes-per-s=8 MiB",
        "--qos-weight=7",
        "--qos-burst-iops=9",
        "--qos-burst-s=60",
        "--vhost-user-socket=/run/web.sock",
        "--vhost-user-mode=client",
        "--vhost-user-queues=4",
        "--nbd-socket=/run/nbd.sock",
    ])
    .unwrap();
    let file = "[[store]]\nname = \"fast\"\npath = \"/srv\"\n[[disk]]\nname = \"web\"\n\
                store = \"fast\"\nformat = \"vhdx\"\nfile = \"vms/web.vhdx\"\n\
                kind = \"differencing\"\nsize_bytes = \"10 GiB\"\nparent = \"base.vhdx\"\n\
                read_only = true\nserial = \"S1\"\nlogical_sector = 4096\n\
                block_bytes = 1048576\nvhost_user = { socket = \"/run/web.sock\", \
                mode = \"client\", queues = 4 }\nnbd.socket = \"/run/nbd.sock\"\n[disk.qos]\n\
                min_iops = 1\nmax_iops = 3\nmax_bytes_per_s = \"8 MiB\"\nweight = 7\n\
                burst_iops = 9\nburst_s = 60\n";
    assert_eq!(disk, parse_toml(file, None).unwrap().disks[0]);
    let minimal = disk_from(&["--qos-policy=gold"]).unwrap();
    assert!(minimal.vhost_user.is_none() && minimal.nbd.is_none());
    assert_eq!(minimal.qos_policy.unwrap().as_str(), "gold");
    let half = disk_from(&["--vhost-user-queues=4"]).unwrap_err();
    let Failure::Refused(errors) = half else { panic!("{half}") };
    assert!(
        errors[0].to_string().starts_with("disk/web: vhost_user.socket: missing;"),
        "{errors:?}"
    );
}

#[test]
fn set_sends_only_the_given_keys() {
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
    assert_eq!(
        patch(&["--offload-segmentation=true", "--unset", "offload"]),
        json!({"offload": null})
    );
    let nothing = SetNic::parse_from(["x", "web"]).set.patch().unwrap_err();
    assert_eq!(nothing.exit_code(), 2);
}

#[test]
fn addresses_are_a_table() {
    let address = |vlan, fixed, age_s| AddressStatus {
        mac: "52:54:00:12:34:56".parse().unwrap(),
        vlan,
        port: "web".to_owned(),
        is_static: fixed,
        age_s,
    };
    let addresses = [address(Some(10), false, Some(75)), address(None, true, None)];
    insta::assert_snapshot!(address_table(&addresses).render(), @r"
    ADDRESS            VLAN  PORT         AGE
    52:54:00:12:34:56    10  web   1 min 15 s
    52:54:00:12:34:56     –  web        fixed
    ");
}
