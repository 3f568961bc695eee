//! Strategies for valid hosts of every kind, for property tests.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::test_disks::{Storage, name, storage};
use crate::{
    HostConfig, NicConfig, SwitchConfig, TeamConfig, TeamMode, UplinkConfig, UplinkDriver,
    VmqConfig, validate,
};

fn switch(index: usize, kind: u8, ageing_s: u32, flags: [bool; 2]) -> SwitchConfig {
    let mut switch = serde_json::json!({"name": name("s", index), "ageing_s": ageing_s});
    switch["kind"] = ["private", "internal", "external"][usize::from(kind)].into();
    let [device, segmentation] = flags;
    if kind == 1 {
        switch["host_offload"] = serde_json::json!({"segmentation": segmentation});
        if device {
            switch["host_device"] = format!("host{index}").into();
        }
    }
    if kind == 2 {
        switch["uplink"] = format!("u{index}").into();
    }
    serde_json::from_value(switch).unwrap()
}

fn uplink() -> impl Strategy<Value = UplinkConfig> {
    let numbers = (1u16..=64, option::of(68u16..=9216));
    (any::<[bool; 3]>(), numbers, vmq()).prop_map(|(flags, (queues, mtu), vmq)| {
        let driver = if flags[0] { "tap" } else { "af_packet" };
        let uplink = serde_json::json!({
            "name": "u", "device": "d", "driver": driver, "queues": queues, "mtu": mtu,
            "offload": {"segmentation": flags[1], "rx_checksum": flags[2]},
        });
        UplinkConfig { vmq, ..serde_json::from_value(uplink).unwrap() }
    })
}

fn vmq() -> impl Strategy<Value = VmqConfig> {
    let workers = (option::of(Just(0u16)), 1u16..=64, option::of(0u16..64));
    (any::<[bool; 2]>(), workers, option::of(0u16..1024)).prop_map(
        |([enabled, is_static], (base, count, highest), node)| {
            let mode = if is_static { "static" } else { "dynamic" };
            let vmq = serde_json::json!({"enabled": enabled, "mode": mode, "max_workers": count});
            let mut vmq: VmqConfig = serde_json::from_value(vmq).unwrap();
            vmq.base_worker = base;
            vmq.max_worker_number = highest;
            vmq.numa_node = node;
            vmq
        },
    )
}

/// Generates teams with the members `u` and `v`. [`put_on_team`] appends the number of a switch to
/// these names.
fn team() -> impl Strategy<Value = TeamConfig> {
    let roles = (option::of(any::<bool>()), option::of(any::<bool>()), option::of(any::<u16>()));
    (0usize..3, 0usize..5, 1usize..=2, roles, vmq()).prop_map(
        |(mode, algorithm, members, (first, second, priority), vmq)| {
            let modes = ["static", "lacp", "switch-independent"];
            let algorithms =
                ["hyper-v-port", "transport-ports", "ip-addresses", "mac-addresses", "dynamic"];
            let names = ["u", "v"];
            let mut team = serde_json::json!({
                "name": "t", "mode": modes[mode], "algorithm": algorithms[algorithm],
                "members": names[..members],
            });
            match mode {
                0 => team["min_links"] = members.into(),
                1 => {
                    team["lacp_timer"] =
                        first.map(|flag| if flag { "fast" } else { "slow" }).into();
                    team["lacp_active"] = second.into();
                    team["lacp_system_priority"] = priority.into();
                }
                _ if members == 2 => {
                    team["standby"] = first.map(|flag| names[usize::from(flag)]).into();
                    let other = first.filter(|_| second == Some(true));
                    team["primary"] = other.map(|flag| names[usize::from(!flag)]).into();
                }
                _ => {}
            }
            if let serde_json::Value::Object(table) = &mut team {
                table.retain(|_, value| !value.is_null());
            }
            TeamConfig { vmq, ..serde_json::from_value(team).unwrap() }
        },
    )
}

/// Makes the team the uplink of the switch with this number, and adds both uplinks.
fn put_on_team(host: &mut HostConfig, index: usize, mut team: TeamConfig) {
    let own_name = [&mut team.name].into_iter();
    for target in
        own_name.chain(&mut team.members).chain(&mut team.standby).chain(&mut team.primary)
    {
        *target = name(target.as_str(), index);
    }
    let uplink = &mut host.uplinks[index];
    uplink.vmq = VmqConfig::default();
    if team.mode == TeamMode::Lacp && uplink.driver == UplinkDriver::Tap {
        uplink.driver = UplinkDriver::AfXdp;
    }
    let second = name("v", index);
    let second = UplinkConfig { name: second, device: format!("eth2{index}"), ..uplink.clone() };
    host.switches[index].uplink = Some(team.name.clone());
    host.uplinks.push(second);
    host.teams.push(team);
}

fn nic() -> impl Strategy<Value = NicConfig> {
    let plain = (any::<[bool; 8]>(), option::of(1u16..=99), option::of(vec(0u16..40, 1..4)));
    let numbers = (1u16..=64, 68u16..=9216, option::of(1u32..100), option::of(8000u64..10_000_000));
    (plain, numbers, any::<u8>(), 1u32..=65_536).prop_map(
        |((flags, vlan, trunk), (queues, mtu, storm, bandwidth), mac, learned)| {
            let mut nic = serde_json::json!({
                "name": "n", "switch": "s", "backend": "tap", "queues": queues, "mtu": mtu,
                "isolated": flags[0], "learned_max": learned, "vmq_weight": mac % 101,
                "offload": {"segmentation": flags[1], "tx_checksum": flags[2]},
            });
            nic["vlan"] = vlan.into();
            nic["storm_limit_fps"] = storm.into();
            nic["bandwidth_max_bps"] = bandwidth.into();
            if let Some(gaps) = trunk {
                let mut first = 100;
                let mut ranges = Vec::new();
                for gap in gaps {
                    ranges.push(serde_json::json!(format!("{first}-{}", first + gap)));
                    first += gap + 1;
                }
                nic["trunk"] = ranges.into();
            }
            if flags[3] {
                nic["backend"] = "vhost-user".into();
                nic["socket"] = "/run/vms/a b/\"x\".sock".into();
                nic["mode"] = if flags[4] { "client".into() } else { serde_json::Value::Null };
            } else {
                nic["netns"] = if flags[5] { "blue".into() } else { serde_json::Value::Null };
                nic["device"] = if flags[6] { "t".into() } else { serde_json::Value::Null };
            }
            nic["offload"]["rx_checksum"] = flags[7].into();
            let mut nic: NicConfig = serde_json::from_value(nic).unwrap();
            if mac > 50 {
                nic.mac = Some(suimon_frame::MacAddr::new([2, 0, 0, 0, 0, 0]));
                nic.mac_spoofing = mac > 150;
            }
            nic
        },
    )
}

/// Generates configurations that pass validation.
pub(crate) fn hosts() -> impl Strategy<Value = HostConfig> {
    let attachment = (uplink(), option::of(team()));
    let switches = vec((0u8..3, 10u32..1000, any::<[bool; 2]>(), attachment), 1..4);
    let nics = vec((nic(), any::<u8>(), any::<bool>()), 0..6);
    let workers = option::of(vec(0u16..64, 1..4));
    let rest = (workers, any::<bool>(), storage());
    (switches, nics, rest).prop_map(|(switches, nics, (workers, api, storage))| {
        let mut host = HostConfig::default();
        let Storage { stores, qos_policies, disks } = storage;
        (host.stores, host.qos_policies, host.disks) = (stores, qos_policies, disks);
        host.host.worker_cpus = workers.map(|mut cpus| {
            cpus.sort_unstable();
            cpus.dedup();
            cpus
        });
        if api {
            host.api = serde_json::from_value(serde_json::json!({
                "listen": "127.0.0.1:1", "tls_certificate": "/c", "tls_key": "/k",
                "token_file": "/t"
            }))
            .unwrap();
        }
        host.console = (api && host.host.worker_cpus.is_some()).then(|| {
            serde_json::from_value(serde_json::json!({ "listen": "127.0.0.1:2" })).unwrap()
        });
        host.lab = (api && host.console.is_none())
            .then(|| serde_json::from_value(serde_json::json!({ "results": "/l" })).unwrap());
        let mut teams = Vec::new();
        for (index, (kind, ageing_s, flags, (mut uplink, team))) in switches.into_iter().enumerate()
        {
            host.switches.push(switch(index, kind, ageing_s, flags));
            uplink.name = name("u", index);
            uplink.device = format!("eth{index}");
            host.uplinks.push(uplink);
            teams.extend(team.filter(|_| kind == 2).map(|team| (index, team)));
        }
        for (index, team) in teams {
            put_on_team(&mut host, index, team);
        }
        for (index, (mut nic, switch_index, keep)) in nics.into_iter().enumerate() {
            nic.name = name("n", if keep { index } else { index + 10 });
            nic.switch =
                host.switches[usize::from(switch_index) % host.switches.len()].name.clone();
            nic.device = nic.device.map(|_| format!("tap{index}"));
            nic.socket = nic.socket.map(|path| path.with_extension(index.to_string()));
            nic.mac = nic.mac.map(|_| suimon_frame::MacAddr::new([2, 0, 0, 0, 0, index as u8]));
            host.nics.push(nic);
        }
        assert_eq!(validate(&host), Ok(()));
        host
    })
}
