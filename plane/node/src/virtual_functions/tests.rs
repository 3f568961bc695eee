mod held;

use std::time::Duration;

use suimon_contract::{
    HostConfig, IovPath, NicStatus, OperationState, VmState, VmStatus, parse_toml,
};
use suimon_forwarding::PortRole;
use suimon_frame::MacAddr;
use suimon_ports::{SriovHost, VmErrorKind, VmNotice};
use suimon_quantity::PortId;
use suimon_switch::Topology;

use crate::testing::{FakeSriov, FakeVms, Harness, MemoryStore, name, wait_until};
use crate::vms::VmAction;

/// Two VMs with a NIC each on one adapter, and a namespace guest.
const HOST: &str = r#"
    [[switch]]
    name = "wan"
    kind = "external"
    uplink = "up"
    iov = true
    [[uplink]]
    name = "up"
    device = "wan0"
    [[pf]]
    name = "wan"
    device = "wan0"
    vfs = 1
    [[nic]]
    name = "web"
    switch = "wan"
    backend = "vhost-user"
    mac = "52:54:00:00:00:01"
    vlan = 20
    iov_weight = 50
    [[nic]]
    name = "db"
    switch = "wan"
    backend = "vhost-user"
    mac = "52:54:00:00:00:02"
    iov_weight = 20
    [[nic]]
    name = "light"
    switch = "wan"
    backend = "tap"
    mac = "52:54:00:00:00:03"
    [[vm]]
    name = "web"
    memory_bytes = "1 GiB"
    nics = ["web"]
    kernel = "/boot/vmlinuz"
    [[vm]]
    name = "db"
    memory_bytes = "1 GiB"
    nics = ["db"]
    kernel = "/boot/vmlinuz"
"#;

struct Bench {
    harness: Harness,
    sriov: FakeSriov,
    vms: FakeVms,
}

impl Bench {
    fn new(host: &str) -> Self {
        Self::with_adapters(1, host)
    }

    fn with_adapters(number: u8, host: &str) -> Self {
        let (sriov, vms) = (FakeSriov::with_adapters(number), FakeVms::default());
        let harness = Harness::with_iov(MemoryStore::default(), sriov.clone(), vms.clone());
        harness.plane.run_clock();
        harness.apply_ok(&config(host));
        Self { harness, sriov, vms }
    }

    /// Kills the daemon and starts another. `meanwhile` is called in between and changes VMs.
    fn die(self, meanwhile: impl FnOnce(&FakeVms)) -> Self {
        self.die_with_store(|vms, _| meanwhile(vms))
    }

    /// As [`Self::die`]; `meanwhile` also changes the state store.
    fn die_with_store(self, meanwhile: impl FnOnce(&FakeVms, &MemoryStore)) -> Self {
        let Self { harness, sriov, vms } = self;
        // The kernel shows VFs bound to `vfio-pci`.
        sriov.change(0, |pf| {
            pf.vfs.iter_mut().for_each(|vf| vf.driver = Some("vfio-pci".to_owned()));
        });
        vms.forget_observers();
        let (store, _) = harness.kill();
        sriov.leads();
        meanwhile(&vms, &store);
        let harness = Harness::with_iov(store, sriov.clone(), vms.clone());
        harness.plane.run_clock();
        Self { harness, sriov, vms }
    }

    fn start(&self, vm: &str) {
        self.run_action(vm, VmAction::Start);
    }

    fn run_action(&self, vm: &str, action: VmAction) {
        let operation = self.harness.node.start_vm_action(&name(vm), action).unwrap();
        let operation = self.harness.node.wait_operation(operation.id, Duration::from_secs(20));
        assert_eq!(operation.unwrap().state, OperationState::Succeeded);
    }

    fn nic(&self, nic: &str) -> NicStatus {
        self.harness.node.nic(nic).unwrap()
    }

    fn vm(&self, vm: &str) -> VmStatus {
        self.harness.node.vm(vm).unwrap()
    }

    fn path(&self, nic: &str) -> IovPath {
        self.nic(nic).iov.unwrap().path
    }

    fn wait_path(&self, nic: &str, path: IovPath) {
        wait_until(&format!("{nic} {path:?}"), || self.path(nic) == path);
    }

    fn wait_reason(&self, nic: &str, part: &str) {
        let reason = || self.nic(nic).iov.and_then(|iov| iov.reason).unwrap_or_default();
        wait_until(part, || reason().contains(part));
    }

    /// Waits until the switch reaches a NIC's address through the uplink, which is published after
    /// the NIC's path.
    fn wait_address_added(&self, nic: &str) {
        wait_until(&format!("{nic} reached"), || self.reached_by(nic) == Some(self.uplink()));
    }

    /// Returns the port through which the switch reaches a NIC's address instead of the NIC's own
    /// port.
    fn reached_by(&self, nic: &str) -> Option<PortId> {
        reached_by(&self.harness.plane.topology(), self.mac(nic))
    }

    fn mac(&self, nic: &str) -> MacAddr {
        self.nic(nic).config.mac.unwrap()
    }

    fn uplink(&self) -> PortId {
        let topology = self.harness.plane.topology();
        topology.ports.iter().find(|port| port.spec.role == PortRole::Uplink).unwrap().spec.id
    }

    /// Asserts that since the daemon's start all tables reached the NIC's address through the
    /// uplink, and that the address was never added for the physical function.
    fn assert_was_always_on_its_vf(&self, nic: &str) {
        let (mac, uplink) = (self.mac(nic), Some(self.uplink()));
        let published = self.harness.plane.published();
        let led: Vec<_> = published.iter().map(|tables| reached_by(tables, mac)).collect();
        assert!(!led.is_empty() && led.iter().all(|led_uplink| *led_uplink == uplink), "{led:?}");
        let leads = self.sriov.leads();
        assert!(leads.contains(&(mac, false)) && !leads.contains(&(mac, true)), "{leads:?}");
    }

    /// Waits until the adapter has this number of addresses, which are updated by a query after the
    /// daemon's start.
    fn wait_led(&self, number: usize) {
        wait_until("the adapter has the expected number of addresses", || {
            self.sriov.led_addresses().len() == number
        });
    }
}

fn reached_by(tables: &Topology, mac: MacAddr) -> Option<PortId> {
    tables.ports.iter().find(|port| port.spec.mac == Some(mac)).unwrap().spec.reached_by_uplink
}

fn config(host: &str) -> HostConfig {
    parse_toml(host, None).unwrap()
}

#[test]
fn adapters_have_the_addresses_when_a_change_has_succeeded() {
    let bench = Bench::new(HOST);
    let led = bench.sriov.led_addresses();
    assert_eq!(led.len(), 3, "{led:?}");
    bench.harness.apply_ok(&config(&HOST.replace("iov = true", "iov = false")));
    assert_eq!(bench.sriov.led_addresses(), Vec::<String>::new());
    bench.harness.apply_ok(&config(HOST));
    assert_eq!(bench.sriov.led_addresses(), led);
}

#[test]
fn the_nic_with_the_highest_weight_has_the_vf_and_is_reached_by_the_uplink() {
    let bench = Bench::new(HOST);
    bench.wait_reason("web", "no running VM has the NIC");
    bench.start("web");
    assert!(bench.vms.spec("web").nics[0].is_standby);
    bench.wait_path("web", IovPath::Vf);
    let iov = bench.nic("web").iov.unwrap();
    assert_eq!(iov.to_string(), "VF 0 of 0000:01:00.0");
    let vf = bench.sriov.properties(0).vfs[0].clone();
    let settings = vf.settings.unwrap();
    assert_eq!(settings.mac.to_string(), "52:54:00:00:00:01");
    assert_eq!(
        (settings.vlan.map(|vlan| vlan.get()), settings.spoof_check),
        (Some(20), Some(true))
    );
    assert_eq!(bench.vms.plugged_vfs("web")["web"], vf.address.to_string());
    bench.wait_address_added("web");
    assert_eq!(bench.reached_by("light"), None);
    // The embedded switch has the addresses of the other NICs only.
    let led = || bench.sriov.led_addresses();
    wait_until("the adapter has the addresses of both other NICs", || {
        led() == ["0000:01:00.0 52:54:00:00:00:02", "0000:01:00.0 52:54:00:00:00:03"]
    });
    let adapter = bench.harness.node.sriov_adapter("wan").unwrap();
    assert_eq!(adapter.vfs[0].used_by.as_deref(), Some("nic/web of vm/web"));
    assert_eq!(adapter.vfs_in_use, 1);
    // The only VF is not taken from the NIC that has it.
    bench.start("db");
    bench.wait_reason("db", "no VF for this NIC is free");
    bench.harness.apply_ok(&config(&HOST.replace("iov_weight = 20", "iov_weight = 90")));
    assert_eq!((bench.path("web"), bench.path("db")), (IovPath::Vf, IovPath::Paravirtual));
    bench.harness.wait_events(9011, 1);
    // With weight 0 the VF is taken once the guest has released it.
    bench.harness.apply_ok(&config(&HOST.replace("iov_weight = 50", "iov_weight = 0")));
    wait_until("the unplug of the VF is requested", || {
        bench.vms.commands().iter().any(|command| command == "web unplug VF of nic/web")
    });
    assert_eq!(bench.reached_by("web"), Some(bench.uplink()), "its VF carries it as long");
    bench.vms.release_vf("web", "web");
    bench.wait_path("db", IovPath::Vf);
    wait_until("the switch reaches the NIC by its own port", || {
        (bench.nic("web").iov, bench.reached_by("web")) == (None, None)
    });
    let settings = bench.sriov.properties(0).vfs[0].settings.clone().unwrap();
    assert_eq!((settings.mac.to_string().as_str(), settings.vlan), ("52:54:00:00:00:02", None));
    let event_counts = || (bench.harness.events(9008).len(), bench.harness.events(9009).len());
    wait_until("both NICs have emitted their events", || event_counts() == (2, 1));
}

/// Two running VMs become eligible for the only VF at the same time. The NIC with the higher weight
/// gets it, although the other one is first by name.
#[test]
fn of_simultaneously_eligible_nics_the_one_with_the_highest_weight_gets_the_vf() {
    let host = format!("{HOST}[[pf]]\nname = \"other\"\ndevice = \"wan1\"\nvfs = 0\n");
    let other_device = host.replacen("device = \"wan0\"", "device = \"wan1\"", 1);
    let bench = Bench::with_adapters(2, &other_device);
    bench.start("db");
    bench.start("web");
    assert_eq!((bench.path("db"), bench.path("web")), (IovPath::Paravirtual, IovPath::Paravirtual));
    bench.harness.apply_ok(&config(&host));
    bench.wait_path("web", IovPath::Vf);
    bench.wait_reason("db", "no VF for this NIC is free");
}

#[test]
fn the_reason_why_a_nic_has_no_vf_is_shown() {
    let bench = Bench::new(&HOST.replacen("iov_weight = 50", "", 1));
    assert_eq!(bench.nic("web").iov, None);
    bench.vms.take_vfs(false);
    bench.start("web");
    bench.harness.apply_ok(&config(HOST));
    bench.wait_reason("web", "plugged in without iov_weight");
    bench.start("db");
    bench.wait_reason("db", "does not negotiate VIRTIO_NET_F_STANDBY");
    assert!(bench.vms.vfs().is_empty());
    bench.vms.take_vfs(true);
    bench.wait_path("db", IovPath::Vf);
}

#[test]
fn a_vf_that_fails_falls_back_at_once_and_is_free_when_the_vm_has_ended() {
    let bench = Bench::new(HOST);
    bench.vms.refuse_all("give_vf", VmErrorKind::Host, "vfio-pci is not loaded");
    bench.start("web");
    bench.wait_reason("web", "vfio-pci is not loaded");
    wait_until("NicLostVf is emitted once", || bench.harness.events(9010).len() == 1);
    bench.vms.refuse_all("none", VmErrorKind::Host, "");
    // After the retry delay of a failed VF.
    bench.wait_path("web", IovPath::Vf);
    bench.sriov.change(0, |pf| pf.driver = None);
    bench.wait_path("web", IovPath::Paravirtual);
    bench.wait_reason("web", "the adapter has no driver");
    assert_eq!(bench.reached_by("web"), None);
    bench.vms.release_vf("web", "web");
    wait_until("no VF is bound to vfio-pci", || bench.vms.vfs().is_empty());
    bench.sriov.change(0, |pf| pf.driver = Some("igb".to_owned()));
    bench.wait_path("web", IovPath::Vf);
    // The guest releases the VF without a request.
    bench.vms.release_vf("web", "web");
    bench.wait_path("web", IovPath::Paravirtual);
    bench.wait_path("web", IovPath::Vf);
    let end_notice = VmNotice::Ended { is_orderly: true, reason: "off".to_owned() };
    bench.vms.guest("web", end_notice);
    bench.wait_reason("web", "no running VM has the NIC");
    wait_until("no VF is bound to vfio-pci", || bench.vms.vfs().is_empty());
    let settings = bench.sriov.properties(0).vfs[0].settings.clone().unwrap();
    assert_eq!(settings.mac.to_string(), "00:00:00:00:00:00");
}

#[test]
fn a_vf_is_free_after_its_nic_was_unplugged_from_a_running_vm() {
    let bench = Bench::new(HOST);
    bench.start("web");
    bench.wait_path("web", IovPath::Vf);
    bench.vms.release_vfs(|| {});
    let mut without_nics = config(HOST);
    without_nics
        .vms
        .iter_mut()
        .filter(|vm| vm.name.as_str() == "web")
        .for_each(|vm| vm.nics.clear());
    bench.harness.apply_ok(&without_nics);
    wait_until("the guest has no NIC", || bench.vm("web").nics.is_empty());
    wait_until("no VF is bound to vfio-pci", || bench.vms.vfs().is_empty());
    // The VF is assigned to another VM.
    bench.start("db");
    bench.wait_path("db", IovPath::Vf);
}

#[test]
fn the_unplug_of_a_nic_is_requested_after_the_guest_has_released_its_vf() {
    let bench = Bench::new(HOST);
    bench.start("web");
    bench.wait_path("web", IovPath::Vf);
    let mut without_nics = config(HOST);
    without_nics
        .vms
        .iter_mut()
        .filter(|vm| vm.name.as_str() == "web")
        .for_each(|vm| vm.nics.clear());
    bench.harness.apply_ok(&without_nics);
    let unplugs = || -> Vec<String> {
        bench.vms.commands().into_iter().filter(|command| command.contains("unplug")).collect()
    };
    wait_until("the unplug of the VF is requested", || !unplugs().is_empty());
    assert_eq!(unplugs(), ["web unplug VF of nic/web"]);
    assert_eq!(bench.vms.vfs().len(), 1);
    bench.vms.release_vf("web", "web");
    wait_until("the unplug of the NIC is requested", || unplugs().len() > 1);
    assert_eq!(unplugs()[1], "web unplug nic/web");
    assert!(bench.vms.vfs().is_empty());
}

#[test]
fn a_change_of_a_nic_applies_to_its_vf_and_a_reset_vf_is_released() {
    let bench = Bench::new(HOST);
    bench.start("web");
    bench.wait_path("web", IovPath::Vf);
    bench.harness.apply_ok(&config(&HOST.replace("vlan = 20", "bandwidth_max_bps = 2500000")));
    let settings = || bench.sriov.properties(0).vfs[0].settings.clone().unwrap();
    wait_until("VLAN and rate", || (settings().vlan, settings().rate_max_mbps) == (None, 3));
    assert_eq!(bench.path("web"), IovPath::Vf);
    // Simulates a reset of the adapter.
    bench.sriov.change(0, |pf| {
        pf.vfs[0].settings.as_mut().unwrap().mac = suimon_frame::MacAddr::default();
    });
    bench.wait_reason("web", "the adapter is being reset");
    bench.vms.release_vf("web", "web");
    bench.wait_path("web", IovPath::Vf);
    assert_eq!(settings().mac.to_string(), "52:54:00:00:00:01");
}

#[test]
fn a_new_daemon_keeps_assigned_vfs_and_frees_those_of_ended_vms() {
    let bench = Bench::new(&HOST.replace("vfs = 1", "vfs = 2"));
    bench.start("web");
    bench.start("db");
    bench.wait_path("web", IovPath::Vf);
    bench.wait_path("db", IovPath::Vf);
    let before = (bench.vms.plugged_vfs("web"), bench.vms.plugged_vfs("db"));
    let bench = bench.die(|_| {});
    bench.wait_path("web", IovPath::Vf);
    bench.wait_path("db", IovPath::Vf);
    assert_eq!((bench.vms.plugged_vfs("web"), bench.vms.plugged_vfs("db")), before);
    bench.wait_address_added("web");
    bench.run_action("db", VmAction::Kill);
    wait_until("one VF is bound to vfio-pci", || bench.vms.vfs().len() == 1);
    assert_eq!(bench.path("web"), IovPath::Vf);
}

/// Frames use the VF as soon as devices are open, which can be long before QEMU responds.
#[test]
fn a_new_daemons_first_tables_have_vms_on_their_vfs() {
    let bench = Bench::new(HOST);
    bench.start("web");
    bench.wait_path("web", IovPath::Vf);
    // The previous daemon may have ended before it removed the address from the physical function.
    let web = bench.mac("web");
    let reload = |bench: &Bench| {
        let pf = bench.sriov.properties(0).address;
        SriovHost::set_embedded_switch_address(&bench.sriov, pf, web, true).unwrap();
    };
    bench.wait_led(2);
    reload(&bench);
    let bench = bench.die(|_| {});
    assert_eq!(bench.path("web"), IovPath::Vf);
    bench.wait_led(2);
    wait_until("the VM is shown as running", || bench.vm("web").state == VmState::Running);
    bench.assert_was_always_on_its_vf("web");
    assert!(bench.vms.commands().iter().all(|command| !command.contains("unplug")));
    // The same for a VM that does not respond.
    reload(&bench);
    let bench = bench.die(|vms| vms.refuse_all("adopt", VmErrorKind::Timeout, "it is silent"));
    bench.wait_led(2);
    wait_until("the VM's status contains a reason", || bench.vm("web").reason.is_some());
    assert_eq!((bench.path("web"), bench.vm("web").state), (IovPath::Vf, VmState::NotResponding));
    bench.assert_was_always_on_its_vf("web");
    // The unplug is requested when the VM responds; until then the VF is not assigned to another
    // NIC.
    bench.harness.apply_ok(&config(&HOST.replace("iov_weight = 50", "iov_weight = 0")));
    bench.start("db");
    bench.wait_reason("db", "no VF for this NIC is free");
    assert_eq!((bench.vms.vfs().len(), bench.reached_by("web")), (1, Some(bench.uplink())));
    bench.vms.refuse_all("none", VmErrorKind::Host, "");
    wait_until("the unplug of the VF is requested", || {
        bench.vms.commands().iter().any(|command| command == "web unplug VF of nic/web")
    });
    bench.vms.release_vf("web", "web");
    bench.wait_path("db", IovPath::Vf);
}

#[test]
fn a_new_daemon_frees_vfs_that_vms_do_not_have_any_more() {
    let bench = Bench::new(&HOST.replace("vfs = 1", "vfs = 2"));
    bench.start("web");
    bench.start("db");
    bench.wait_path("web", IovPath::Vf);
    bench.wait_path("db", IovPath::Vf);
    let bench = bench.die(|vms| {
        vms.release_vf("web", "web");
        vms.guest("db", VmNotice::Ended { is_orderly: false, reason: "it died".to_owned() });
    });
    bench.wait_reason("web", "the VF was unplugged while no daemon was running");
    bench.wait_reason("db", "no running VM has the NIC");
    wait_until("no VF is bound to vfio-pci", || bench.vms.vfs().is_empty());
    // The tables are published after the release.
    wait_until("the switch reaches both NICs by their own ports", || {
        (bench.reached_by("web"), bench.reached_by("db")) == (None, None)
    });
    bench.sriov.change(0, |pf| {
        pf.vfs.iter_mut().for_each(|vf| vf.driver = Some("igbvf".to_owned()));
    });
    // After the retry delay of a failed VF.
    bench.wait_path("web", IovPath::Vf);
}
