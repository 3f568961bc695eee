use proptest::prelude::*;

use crate::test_configs::hosts;
use crate::{HostConfig, ResourceKind, key_default, parse_toml, to_toml};

#[test]
fn defaults_are_left_out_and_order_is_that_of_the_reference() {
    let text = r#"
[[nic]]
isolated = true
mtu = 1500
trunk = ["20-29", 5]
backend = "tap"
switch = "lan"
name = "a"
offload.segmentation = false
[[switch]]
kind = "private"
name = "lan"
ageing_s = 300
[[switch]]
name = "lab"
kind = "internal"
host_offload = { rx_checksum = false, tx_checksum = true }
"#;
    let config = parse_toml(text, None).unwrap();
    insta::assert_snapshot!(to_toml(&config), @r#"
    [[switch]]
    name = "lan"
    kind = "private"

    [[switch]]
    name = "lab"
    kind = "internal"

    [switch.host_offload]
    rx_checksum = false

    [[nic]]
    name = "a"
    switch = "lan"
    backend = "tap"
    trunk = ["20-29", 5]
    isolated = true

    [nic.offload]
    segmentation = false
    "#);
    assert_eq!(to_toml(&HostConfig::default()), "");
}

#[test]
fn teams_are_written_between_uplinks_and_switches() {
    let text = r#"
[[switch]]
name = "lan"
kind = "external"
uplink = "both"
[[team]]
vmq = { max_workers = 2, enabled = true, base_worker = 0 }
min_links = 1
lacp_active = true
lacp_timer = "fast"
algorithm = "dynamic"
mode = "lacp"
members = ["right", "left"]
name = "both"
[[uplink]]
name = "left"
device = "eth0"
[[uplink]]
name = "right"
device = "eth1"
vmq.max_workers = 4
"#;
    insta::assert_snapshot!(to_toml(&parse_toml(text, None).unwrap()), @r#"
    [[uplink]]
    name = "left"
    device = "eth0"

    [[uplink]]
    name = "right"
    device = "eth1"

    [[team]]
    name = "both"
    members = ["right", "left"]
    mode = "lacp"
    lacp_timer = "fast"
    lacp_active = true

    [team.vmq]
    base_worker = 0
    max_workers = 2

    [[switch]]
    name = "lan"
    kind = "external"
    uplink = "both"
    "#);
}

#[test]
fn disks_are_written_as_people_write_them() {
    let text = r#"
[[disk]]
nbd = { socket = "/run/nbd.sock" }
vhost_user = { queues = 1, mode = "server", socket = "/run/web.sock" }
qos = { max_bytes_per_s = 1000000, weight = 100, min_iops = 500 }
block_bytes = 1048576
physical_sector = 4096
size_bytes = 10737418240
kind = "dynamic"
format = "vhdx"
store = "fast"
name = "web"
[[qos_policy]]
name = "gold"
kind = "dedicated"
max_bytes_per_s = "104857600 B"
weight = 200
[[store]]
depth_max = 256
normalization_bytes = "8 KiB"
path = "/srv/fast"
name = "fast"
"#;
    insta::assert_snapshot!(to_toml(&parse_toml(text, None).unwrap()), @r#"
    [[store]]
    name = "fast"
    path = "/srv/fast"

    [[qos_policy]]
    name = "gold"
    max_bytes_per_s = "100 MiB"
    weight = 200

    [[disk]]
    name = "web"
    store = "fast"
    format = "vhdx"
    kind = "dynamic"
    size_bytes = "10 GiB"
    block_bytes = "1 MiB"

    [disk.qos]
    min_iops = 500
    max_bytes_per_s = 1000000

    [disk.vhost_user]
    socket = "/run/web.sock"

    [disk.nbd]
    socket = "/run/nbd.sock"
    "#);
}

#[test]
fn defaults_equal_those_of_the_types() {
    assert_eq!(key_default(ResourceKind::Store, "normalization_bytes"), Some(8192.into()));
    assert_eq!(key_default(ResourceKind::QosPolicy, "kind"), Some("dedicated".into()));
    assert_eq!(key_default(ResourceKind::Disk, "physical_sector"), Some(4096.into()));
    assert_eq!(key_default(ResourceKind::Disk, "kind"), None);
    assert_eq!(key_default(ResourceKind::DiskQos, "weight"), Some(100.into()));
    assert_eq!(key_default(ResourceKind::DiskVhostUser, "queues"), Some(1.into()));
    assert_eq!(key_default(ResourceKind::DiskVhostUser, "socket"), None);
    assert_eq!(key_default(ResourceKind::DiskNbd, "socket"), None);
    assert_eq!(key_default(ResourceKind::Nic, "mtu"), Some(1500.into()));
    assert_eq!(key_default(ResourceKind::Nic, "vlan"), None);
    assert_eq!(key_default(ResourceKind::Nic, "backend"), None);
    assert_eq!(key_default(ResourceKind::Uplink, "driver"), Some("af_packet".into()));
    assert_eq!(key_default(ResourceKind::Nic, "vmq_weight"), Some(100.into()));
    assert_eq!(key_default(ResourceKind::Team, "algorithm"), Some("dynamic".into()));
    assert_eq!(key_default(ResourceKind::Team, "min_links"), Some(1.into()));
    assert_eq!(key_default(ResourceKind::Team, "mode"), None);
    assert_eq!(key_default(ResourceKind::Vmq, "max_workers"), Some(4.into()));
    assert_eq!(key_default(ResourceKind::Vmq, "numa_node"), None);
    assert_eq!(key_default(ResourceKind::Offload, "segmentation"), Some(true.into()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn written_configurations_parse_to_the_same_configuration(config in hosts()) {
        let text = to_toml(&config);
        prop_assert_eq!(parse_toml(&text, None), Ok(config), "{}", text);
    }

    #[test]
    fn json_is_read_as_toml_is(config in hosts()) {
        let body = serde_json::json!({"config": config});
        prop_assert_eq!(crate::parse_apply(body.to_string().as_bytes()), Ok(config));
    }
}
