use suimon_contract::{
    Condition, DeviceFeaturesStatus, DropCounter, Health, IovPath, IovStatus, KernelPathStatus,
    OffloadPerformer, OffloadStatus, PortCounters, SteeredNic, SteeringMode, SteeringStatus,
    XdpHook, XdpStatus, parse_toml,
};

use super::*;

const HOST: &str = r#"
[[uplink]]
name = "wan"
device = "eth0"
[[switch]]
name = "lan"
kind = "external"
uplink = "wan"
[[nic]]
name = "web"
switch = "lan"
backend = "vhost-user"
socket = "/run/web.sock"
vlan = 10
trunk = [20, "30-39"]
[[nic]]
name = "light"
switch = "lan"
backend = "tap"
netns = "blue"
"#;

fn counters() -> PortCounters {
    PortCounters {
        rx_frames: 12_345_678,
        rx_bytes: 9_876_543_210,
        tx_frames: 9999,
        tx_bytes: 640,
        rx_dropped: vec![DropCounter { reason: "spoofed_source".to_owned(), frames: 3 }],
        tx_dropped: vec![DropCounter { reason: "queue_full".to_owned(), frames: 0 }],
        ..PortCounters::default()
    }
}

fn nics() -> Vec<NicStatus> {
    let config = parse_toml(HOST, None).unwrap();
    let mut nics: Vec<NicStatus> = config
        .nics
        .into_iter()
        .map(|config| NicStatus {
            config,
            condition: Condition { health: Health::Up, reason: None },
            counters: counters(),
            offloads: Vec::new(),
            virtio_features: None,
            queue_pairs: 1,
            learned_macs: 2,
            bound_mac: None,
            kernel_path: None,
            iov: None,
        })
        .collect();
    nics[0].condition =
        Condition { health: Health::Down, reason: Some("no VM is connected".to_owned()) };
    nics[0].iov = Some(IovStatus {
        path: IovPath::Vf,
        adapter: Some("0000:03:00.0".to_owned()),
        vf_index: Some(3),
        vf_address: Some("0000:03:10.6".to_owned()),
        reason: None,
    });
    nics[0].virtio_features = Some("0x130003".to_owned());
    nics[1].kernel_path = Some(KernelPathStatus {
        open: true,
        reason: None,
        rx_frames: 12_000_000,
        rx_bytes: 9_000_000_000,
        tx_frames: 3,
        tx_bytes: 180,
    });
    nics[0].offloads = vec![OffloadStatus {
        name: "tx_checksum".to_owned(),
        supported: Some(true),
        enabled: false,
        effective: false,
        performer: OffloadPerformer::Guest,
        reason: "switched off in the host file".to_owned(),
    }];
    nics
}

#[test]
fn nics_are_shown_in_a_table_and_in_detail() {
    let nics = nics();
    insta::assert_snapshot!(NicConfig::table(&nics).render(), @r"
    NAME   SWITCH  BACKEND            VLAN               PATH                  QUEUES       RX     TX  DROPS  HEALTH
    web    lan     vhost-user         10 trunk 20,30-39  VF 3 of 0000:03:00.0       1  9.88 GB  640 B      3  down: no VM is connected
    light  lan     tap light in blue  –                  –                          1  9.88 GB  640 B      3  up
    ");
    insta::assert_snapshot!(NicConfig::details(&nics[0]), @r#"
    name                    web
    switch                  lan
    backend                 vhost-user
    socket                  /run/web.sock
    vlan                    10
    trunk                   20, 30-39
    queues                  1
    mtu                     1500
    mac_spoofing            false
    isolated                false
    learned_max             1024
    kernel_path             false
    vmq_weight              100
    iov_weight              0
    health                  down: no VM is connected
    queue pairs in use      1
    addresses learned       2
    virtio features         0x130003
    path                    VF 3 of 0000:03:00.0
    rx (from the port)      12.3 M frames, 9.88 GB
    tx (to the port)        9999 frames, 640 B
    rx dropped              3 spoofed_source
    tx dropped              0
    flooded                 0
    software segmented      0
    software checksummed    0
    software coalesced      0 into 0

    OFFLOAD      SUPPORTED  ENABLED  USED  BY     REASON
    tx_checksum  yes        no       no    guest  switched off in the host file
    "#);
    let light = NicConfig::details(&nics[1]);
    let (_, path) = light.split_once("software coalesced").unwrap();
    insta::assert_snapshot!(path.trim_start(), @r"
    0 into 0
    kernel path             open
      rx on this path       12.0 M frames, 9.00 GB
      tx on this path       3 frames, 180 B
    ");
}

#[test]
fn a_switch_is_shown_too() {
    let config = parse_toml(HOST, None).unwrap();
    let condition = Condition { health: Health::Up, reason: None };
    let switch = SwitchStatus {
        config: config.switches[0].clone(),
        condition,
        nics: vec!["light".parse().unwrap(), "web".parse().unwrap()],
        host_nic_counters: None,
        host_nic_offloads: Vec::new(),
        addresses: 3,
    };
    insta::assert_snapshot!(SwitchConfig::table(core::slice::from_ref(&switch)).render(), @r"
    NAME  KIND      UPLINK  NICS  ADDRESSES  HEALTH
    lan   external  wan        2          3  up
    ");
    insta::assert_snapshot!(SwitchConfig::details(&switch), @r"
    name                    lan
    kind                    external
    uplink                  wan
    ageing_s                300
    iov                     false
    health                  up
    addresses               3
    nics                    light, web
    ");
}

fn uplink() -> UplinkStatus {
    let config = parse_toml(HOST, None).unwrap();
    let condition = Condition { health: Health::Up, reason: None };
    UplinkStatus {
        config: config.uplinks[0].clone(),
        switch: Some("lan".parse().unwrap()),
        condition,
        counters: counters(),
        mtu: 1500,
        mac: None,
        offloads: Vec::new(),
        device_features: DeviceFeaturesStatus::default(),
        af_xdp: None,
        steering: None,
    }
}

#[test]
fn an_uplink_is_shown_with_its_device_features() {
    let uplink = uplink();
    insta::assert_snapshot!(UplinkConfig::table(core::slice::from_ref(&uplink)).render(), @r"
    NAME  DEVICE  DRIVER     SWITCH   MTU       RX     TX  DROPS  HEALTH
    wan   eth0    af_packet  lan     1500  9.88 GB  640 B      3  up
    ");
    insta::assert_snapshot!(UplinkConfig::details(&uplink), @r"
    name                    wan
    device                  eth0
    driver                  af_packet
    queues                  1
    health                  up
    used by switch          lan
    mtu in effect           1500
    address                 –
    rx (from the port)      12.3 M frames, 9.88 GB
    tx (to the port)        9999 frames, 640 B
    rx dropped              3 spoofed_source
    tx dropped              0
    flooded                 0
    software segmented      0
    software checksummed    0
    software coalesced      0 into 0
    ");
    let xdp = XdpStatus {
        hook: XdpHook::Driver,
        zero_copy: false,
        multi_buffer: true,
        chunk_bytes: 4096,
        lost_frames: 12_345,
    };
    let steered = SteeredNic {
        nic: "web".parse().unwrap(),
        mac: "52:54:00:12:34:56".parse().unwrap(),
        vlan: Some(10),
        queue: 1,
    };
    let steering = SteeringStatus {
        mode: SteeringMode::Hardware,
        queues: 4,
        queues_are_exclusive: true,
        reason: None,
        nics: vec![steered],
    };
    let (af_xdp, steering) = (Some(xdp), Some(steering));
    let details = UplinkConfig::details(&UplinkStatus { af_xdp, steering, ..uplink });
    let lines: Vec<_> = details.lines().skip(8).take(4).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    AF_XDP                  driver, copy, multi-buffer, chunks of 4096 bytes
      lost frames           12.3 k frames
    steering                hardware, 1 of 4 queues
      web                   queue 1, to 52:54:00:12:34:56 in VLAN 10
    ");
}
