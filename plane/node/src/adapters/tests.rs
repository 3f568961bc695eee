use std::sync::Arc;

use suimon_contract::{
    ErrorCode, Health, HostConfig, OperationState, PfConfig, SriovSupport, VfConfig,
};
use suimon_ports::VfLinkState;

use super::Sriov;
use crate::testing::{FakeSriov, Harness, MemoryStore, host, name, wait_until};
use crate::{ChangeOptions, Edit, ResourceEdit};

const TWO_VFS: &str = r#"
    [[pf]]
    name = "wan"
    device = "wan0"
    vfs = 2
    [[pf.vf]]
    index = 1
    mac = "52:54:00:00:00:01"
    vlan = 20
    spoof_check = false
    trust = true
    bandwidth_max_bps = 100000000
    link_state = "enable"
"#;

fn harness(sriov: &FakeSriov) -> Harness {
    Harness::with_sriov(MemoryStore::default(), sriov.clone())
}

fn refusal(harness: &Harness, config: &HostConfig) -> (ErrorCode, String, String) {
    let edit = Edit::Apply(Box::new(config.clone()));
    let errors = harness.node.preview(&edit, ChangeOptions::default()).unwrap_err();
    let submitted = harness.node.submit(edit).unwrap_err();
    assert_eq!(errors, submitted);
    let error = &errors[0];
    assert_eq!(error.resource.as_deref(), Some("pf/wan"), "{errors:?}");
    (error.code, error.field.clone().unwrap_or_default(), error.message.clone())
}

#[test]
fn an_adapter_is_configured_and_shown_as_read_back() {
    let sriov = FakeSriov::with_adapters(2);
    let harness = harness(&sriov);
    harness.apply_ok(&host(TWO_VFS));
    let settings = sriov.properties(0).vfs[1].settings.clone().unwrap();
    assert_eq!(settings.mac.to_string(), "52:54:00:00:00:01");
    assert_eq!(settings.vlan.unwrap().get(), 20);
    assert_eq!((settings.spoof_check, settings.trust), (Some(false), Some(true)));
    assert_eq!(settings.rate_max_mbps, 100);
    assert_eq!(settings.link_state, Some(VfLinkState::Enable));
    let status = harness.node.pf("wan").unwrap();
    assert_eq!(status.condition.health, Health::Up);
    let adapter = status.adapter.unwrap();
    assert_eq!((adapter.vfs_supported, adapter.vfs_enabled, adapter.vfs_in_use), (7, 2, 0));
    assert_eq!(adapter.vfs[1].bandwidth_max_bps, Some(100_000_000));
    assert_eq!(adapter.support, SriovSupport::Supported);
    for device in ["wan0", "0000:01:00.0", "wan"] {
        assert_eq!(harness.node.sriov_adapter(device).unwrap(), adapter, "{device}");
    }
    assert_eq!(harness.node.sriov_adapters().unwrap().len(), 2);
    assert_eq!(harness.node.sriov_adapter("eth9").unwrap_err().code, ErrorCode::NotFound);
    let [enabled, set] = [9006, 9007].map(|id| [harness.wait_event(id)]);
    assert_eq!((enabled[0].fields["from"].as_str(), enabled[0].fields["to"].as_str()), ("0", "2"));
    assert_eq!(set[0].fields["vlan"], "20");
    assert_eq!(set[0].fields["vf"], "1");
    // An equal configuration causes no change of the adapter.
    sriov.settings_applied();
    let mut config = host(TWO_VFS);
    config.pfs[0].vf_settings.push(VfConfig::new(0));
    harness.apply_ok(&config);
    assert_eq!(sriov.settings_applied(), Vec::<String>::new());
}

#[test]
fn a_live_change_sets_only_changed_keys_and_removed_keys_get_their_defaults() {
    let sriov = FakeSriov::with_adapters(1);
    let harness = harness(&sriov);
    harness.apply_ok(&host(TWO_VFS));
    sriov.settings_applied();
    harness.apply_ok(&host(&TWO_VFS.replace("vlan = 20", "vlan = 30")));
    assert_eq!(sriov.settings_applied(), ["0000:01:00.0 vf 1 vlan"]);
    harness.apply_ok(&host(&TWO_VFS.replace("vlan = 20", "").replace("trust = true", "")));
    assert_eq!(sriov.settings_applied(), ["0000:01:00.0 vf 1 vlan", "0000:01:00.0 vf 1 trust"]);
    let settings = sriov.properties(0).vfs[1].settings.clone().unwrap();
    assert_eq!((settings.vlan, settings.trust), (None, Some(false)));
    // An adapter that is removed from the configuration stays unchanged.
    let before = sriov.properties(0);
    harness.apply_ok(&HostConfig::default());
    assert_eq!(sriov.properties(0), before);
    harness.wait_events(9003, 1);
}

#[test]
fn vfs_in_use_are_not_removed_and_their_users_are_named() {
    let sriov = FakeSriov::with_adapters(1);
    let harness = harness(&sriov);
    harness.apply_ok(&host(TWO_VFS));
    let other = host(&TWO_VFS.replace("vfs = 2", "vfs = 3"));
    let used = |change: fn(&mut suimon_ports::VfProperties), part: &str| {
        sriov.change(0, |adapter| change(&mut adapter.vfs[0]));
        let (code, field, text) = refusal(&harness, &other);
        assert_eq!((code, field.as_str()), (ErrorCode::InUse, "vfs"));
        assert!(text.contains("VF 0: ") && text.contains(part), "{text}");
        let adapter = harness.node.sriov_adapter("wan").unwrap();
        assert_eq!(adapter.vfs_in_use, 1);
        assert!(adapter.vfs[0].used_by.as_ref().unwrap().contains(part));
    };
    used(|vf| vf.is_up = true, "vf0 is up");
    used(|vf| vf.netns = Some("blue".to_owned()), "its device vf0 is in network namespace blue");
    used(|vf| (vf.netns, vf.device) = (None, None), "bound to driver igbvf");
    used(|vf| vf.driver = Some("vfio-pci".to_owned()), "for a VM");
    sriov.change(0, |adapter| adapter.vfs[0].driver = None);
    harness.apply_ok(&other);
    assert_eq!(sriov.properties(0).vfs.len(), 3);
}

#[test]
fn invalid_adapter_configurations_are_rejected_before_any_change() {
    let sriov = FakeSriov::with_adapters(2);
    let harness = harness(&sriov);
    let refuse = |from: &str, to: &str, code, field: &str, part: &str| {
        let (actual_code, found_field, text) =
            refusal(&harness, &host(&TWO_VFS.replacen(from, to, 1)));
        assert_eq!((actual_code, found_field.as_str()), (code, field), "{text}");
        assert!(text.contains(part), "{text}");
    };
    refuse("\"wan0\"", "\"eth7\"", ErrorCode::DeviceMissing, "device", "wan0 (0000:01:00.0)");
    refuse("vfs = 2", "vfs = 8", ErrorCode::InvalidValue, "vfs", "at most 7 VFs");
    sriov.change(0, |adapter| adapter.support = suimon_ports::SriovSupport::MissingPfDriver);
    refuse("", "", ErrorCode::Unsupported, "vfs", "MissingPfDriver");
    sriov.change(0, |adapter| {
        adapter.support = suimon_ports::SriovSupport::NoIommu;
        adapter.device = None;
    });
    refuse("\"wan0\"", "\"0000:01:00.0\"", ErrorCode::Unsupported, "vf", "network device");
    sriov.change(0, |adapter| adapter.device = Some("wan0".to_owned()));
    let duplicate = TWO_VFS.replace("\"wan\"", "\"lan\"").replace("\"wan0\"", "\"0000:01:00.0\"");
    let (code, field, text) = refusal(&harness, &host(&format!("{duplicate}{TWO_VFS}")));
    assert_eq!((code, field.as_str()), (ErrorCode::Conflict, "device"));
    assert!(text.contains("pf/lan"), "{text}");
    assert_eq!(sriov.settings_applied(), Vec::<String>::new());
}

#[test]
fn a_change_that_the_driver_rejects_is_rolled_back() {
    let sriov = FakeSriov::with_adapters(2);
    let harness = harness(&sriov);
    sriov.reject_key(Some("link_state"));
    let operation = harness.apply(&host(TWO_VFS));
    assert_eq!(operation.state, OperationState::Failed);
    let error = operation.error.unwrap();
    assert_eq!((error.code, error.field.as_deref()), (ErrorCode::Unsupported, Some("link_state")));
    assert_eq!(sriov.properties(0).vfs, []);
    assert!(harness.node.pfs().is_empty());

    let without_link_state = TWO_VFS.replace("link_state = \"enable\"", "");
    harness.apply_ok(&host(&without_link_state));
    let before = sriov.properties(0);
    let other = TWO_VFS.replace("vlan = 20", "vlan = 30").replace("trust = true", "");
    assert_eq!(harness.apply(&host(&other)).state, OperationState::Failed);
    assert_eq!(sriov.properties(0), before);
}

#[test]
fn externally_changed_settings_are_restored() {
    let sriov = FakeSriov::with_adapters(1);
    let harness = harness(&sriov);
    harness.apply_ok(&host(TWO_VFS));
    sriov.change(0, |adapter| {
        adapter.vfs[1].settings.as_mut().unwrap().vlan = None;
        adapter.vfs[0].settings.as_mut().unwrap().trust = Some(true);
    });
    assert_eq!(harness.node.pf("wan").unwrap().condition.health, Health::Failed);
    wait_until("the adapter is healthy", || {
        harness.node.pf("wan").unwrap().condition.health == Health::Up
    });
    // Settings that are not configured stay as they were changed externally.
    assert_eq!(sriov.properties(0).vfs[0].settings.as_ref().unwrap().trust, Some(true));
    // The adapter was reset while a VM uses the remaining VF.
    sriov.change(0, |adapter| {
        adapter.vfs.truncate(1);
        adapter.vfs[0].driver = Some("vfio-pci".to_owned());
    });
    wait_until("PfFailed is emitted", || !harness.events(9004).is_empty());
    let status = harness.node.pf("wan").unwrap();
    assert_eq!(status.condition.health, Health::Failed);
    assert!(status.condition.reason.unwrap().contains("for a VM"));
    sriov.change(0, |adapter| adapter.vfs[0].driver = None);
    wait_until("PfRecovered is emitted", || !harness.events(9005).is_empty());
    assert_eq!(sriov.properties(0).vfs.len(), 2);
    harness.wait_events(9004, 1);
}

#[test]
fn a_new_daemon_configures_adapters_as_desired() {
    let sriov = FakeSriov::with_adapters(1);
    let harness = harness(&sriov);
    harness.apply_ok(&host(TWO_VFS));
    let before = sriov.properties(0);
    let (store, _) = harness.kill();
    // Simulates a reboot of the host.
    sriov.change(0, |adapter| adapter.vfs.clear());
    let restarted = Harness::with_sriov(store, sriov.clone());
    assert_eq!(sriov.properties(0), before);
    assert_eq!(restarted.node.pf("wan").unwrap().condition.health, Health::Up);
    let (store, _) = restarted.kill();
    sriov.settings_applied();
    let third = Harness::with_sriov(store, sriov.clone());
    assert_eq!(sriov.settings_applied(), Vec::<String>::new());
    // A change of the number of VFs without VF settings.
    let patch = br#"{"vfs":0,"vf":null}"#.to_vec();
    let edit = Edit::Pf(ResourceEdit::<PfConfig>::Patch(name("wan"), patch));
    assert_eq!(third.change(edit).state, OperationState::Succeeded);
    assert_eq!(sriov.properties(0).vfs, []);
}

/// Long-running hosts configure and remove adapters of ever new names.
#[test]
fn failures_of_removed_adapters_are_forgotten() {
    let sriov = Sriov::new(Arc::new(FakeSriov::with_adapters(1)));
    let config = host(TWO_VFS);
    for number in 0..100 {
        for pf in [name("wan"), name(&format!("wan-{number}"))] {
            sriov.record_result(&pf, Some("the adapter is missing".to_owned()));
        }
        sriov.retain_configured(&config);
        assert_eq!(sriov.failures.lock().unwrap().len(), 1);
    }
    assert!(sriov.failure(&name("wan")).is_some());
}
