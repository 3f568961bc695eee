use suimon_contract::{
    ByteSize, DiskNbdTransport, ErrorCode, Event, EventKind, HostConfig, OperationState,
    StorageState,
};
use suimon_ports::{NbdClient, NbdLimits, NbdNotice, NbdServerSpec, NbdTransport};

use crate::Edit;
use crate::testing::{DEADLINE, FakeDevices, FakeDisks, Harness, MemoryStore, host, wait_until};

const STORE: &str = "/srv/fast";
const ADDRESS: &str = "127.0.0.1:10809";

/// Returns a configuration with two disks exported on one TCP address; the first has a Unix socket
/// in addition.
fn shared(keys: &str) -> HostConfig {
    let disk = |name: &str, extra: &str| {
        format!(
            "[[disk]]\nname = \"{name}\"\nstore = \"fast\"\nformat = \"raw\"\n\
             size_bytes = 1048576\n[disk.nbd]\nlisten = \"{ADDRESS}\"\n{keys}\n{extra}\n"
        )
    };
    let store = format!("[[store]]\nname = \"fast\"\npath = \"{STORE}\"\n");
    host(&(store + &disk("a", "socket = \"/run/nbd.sock\"") + &disk("b", "")))
}

fn tls(certificate: &str) -> HostConfig {
    shared(&format!("tls_certificate = \"{certificate}\"\ntls_key = \"/etc/k.pem\""))
}

fn harness() -> Harness {
    let disks = FakeDisks::with_store(STORE);
    Harness::with_disks(MemoryStore::default(), FakeDevices::default(), disks)
}

fn offered(harness: &Harness) -> Vec<(String, Vec<String>)> {
    let servers = harness.disks.sockets().1.into_iter();
    servers.map(|(path, names)| (path.display().to_string(), names)).collect()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn disks_share_servers_which_come_and_go_while_they_are_in_service() {
    let harness = harness();
    let config = shared("");
    harness.apply_ok(&config);
    let expected =
        vec![("/run/nbd.sock".to_owned(), names(&["a"])), (ADDRESS.to_owned(), names(&["a", "b"]))];
    assert_eq!(offered(&harness), expected);

    let mut after = config.clone();
    after.disks[0].nbd.as_mut().unwrap().listen = None;
    after.disks[1].nbd = None;
    harness.apply_ok(&after);
    assert_eq!(offered(&harness), expected[..1]);
    harness.apply_ok(&config);
    assert_eq!(offered(&harness), expected);
    assert_eq!(harness.disks.served_counts(), (2, 2));
}

#[test]
fn access_rules_change_without_a_new_server_and_are_rolled_back() {
    let harness = harness();
    harness.apply_ok(&shared(""));
    let before = harness.disks.servers().1;
    harness.apply_ok(&tls("/etc/c.pem"));
    let (servers, changes) = harness.disks.servers();
    let certificate = |servers: &[NbdServerSpec]| {
        servers.iter().find_map(|spec| match spec {
            NbdServerSpec::Tcp { access, .. } => access.tls.clone().map(|tls| tls.certificate),
            NbdServerSpec::Unix { .. } => None,
        })
    };
    assert_eq!(certificate(&servers), Some("/etc/c.pem".into()));
    // One change for both disks, and a reload of both servers because the whole desired state was
    // applied.
    assert_eq!(changes - before, 1 + 2);

    let mut after = tls("/etc/d.pem");
    after.disks[1].nbd.as_mut().unwrap().socket = Some("/run/refused.sock".into());
    harness.disks.refuse("/run/refused.sock", true);
    assert_eq!(harness.apply(&after).state, OperationState::Failed);
    assert_eq!(certificate(&harness.disks.servers().0), Some("/etc/c.pem".into()));
    assert_eq!(harness.node.config(), tls("/etc/c.pem"));
}

#[test]
fn an_unusable_certificate_is_reported_before_any_change() {
    let harness = harness();
    harness.disks.refuse("/etc/gone.pem", true);
    let config = tls("/etc/gone.pem");
    let errors = harness.node.submit(Edit::Apply(Box::new(config))).unwrap_err();
    assert_eq!(errors.len(), 1, "one server, one error: {errors:?}");
    assert_eq!(errors[0].field.as_deref(), Some("nbd.tls_certificate"));
    assert_eq!(errors[0].resource.as_deref(), Some("disk/a"));
    assert_eq!(errors[0].code, ErrorCode::DeviceBusy);
    assert!(harness.disks.files(STORE).is_empty());
}

#[test]
fn certificates_are_read_again_when_desired_state_is_applied() {
    let harness = harness();
    let config = tls("/etc/c.pem");
    harness.apply_ok(&config);
    let before = harness.disks.servers().1;
    harness.apply_ok(&config);
    assert_eq!(harness.disks.servers().1, before + 2);
    let reload = || harness.node.submit(Edit::Reload).map(|operation| operation.id);
    let id = reload().unwrap();
    let operation = harness.node.wait_operation(id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded);
    assert_eq!(harness.disks.servers().1, before + 4);
    harness.disks.refuse("/etc/c.pem", true);
    let errors = reload().unwrap_err();
    assert_eq!(errors[0].field.as_deref(), Some("nbd.tls_certificate"));
    assert_eq!(offered(&harness).len(), 2, "the former certificate stays in use");
}

/// After a restart the certificate is missing: the disks of that server fail with the reason, and
/// recover later.
#[test]
fn disks_whose_server_cannot_be_opened_fail_without_affecting_others() {
    let first = harness();
    let mut config = tls("/etc/c.pem");
    config.disks[1].nbd = None;
    first.apply_ok(&config);
    let (store, devices, remaining_disks) = first.kill_with_disks();
    remaining_disks.refuse("/etc/c.pem", true);
    let harness = Harness::with_disks(store, devices, remaining_disks);
    let failed = harness.node.disk("a").unwrap();
    assert_eq!(failed.state, StorageState::Failed);
    assert!(failed.reason.is_some());
    assert_eq!(harness.node.disk("b").unwrap().state, StorageState::Ready);
    harness.disks.refuse("/etc/c.pem", false);
    wait_until("the disk is ready", || {
        harness.node.disk("a").unwrap().state == StorageState::Ready
    });
    assert_eq!(offered(&harness).len(), 2);
}

#[test]
fn limits_on_connections_change_live_and_are_shown() {
    let harness = harness();
    harness.apply_ok(&shared(""));
    let (host, peer, of_a) = harness.disks.nbd_limits("a");
    // The defaults of the configuration are those of servers without one.
    assert_eq!(
        (host, peer, of_a),
        (NbdLimits::HOST_DEFAULT, NbdLimits::PEER_DEFAULT, Some(NbdLimits::EXPORT_DEFAULT))
    );
    let servers = harness.disks.servers().1;
    let mut after = shared("");
    after.host.nbd_buffer_max_bytes = Some(ByteSize::new(3 << 20));
    after.host.nbd_peer_connections_max = Some(7);
    let nbd = after.disks[0].nbd.as_mut().unwrap();
    (nbd.connections_max, nbd.buffer_max_bytes) = (Some(2), Some(ByteSize::new(2 << 20)));
    harness.apply_ok(&after);
    let (host, peer, of_a) = harness.disks.nbd_limits("a");
    assert_eq!(host, NbdLimits { buffer_bytes_max: 3 << 20, ..NbdLimits::HOST_DEFAULT });
    assert_eq!(peer, NbdLimits { connections_max: 7, ..NbdLimits::PEER_DEFAULT });
    assert_eq!(of_a, Some(NbdLimits { connections_max: 2, buffer_bytes_max: 2 << 20 }));
    let exports = harness.disks.exports_at("/run/nbd.sock");
    assert_eq!(exports.iter().map(|export| Some(export.limits)).collect::<Vec<_>>(), [of_a]);
    assert!(harness.disks.servers().1 >= servers, "servers continue");
    let status = harness.node.disk("a").unwrap().nbd.unwrap();
    assert_eq!((status.connections_max, status.buffer_max_bytes), (2, 2 << 20));
    let host = harness.node.host_status().nbd;
    assert_eq!(
        (host.buffer_max_bytes, host.peer_connections_max, host.buffer_shortages),
        (3 << 20, 7, 3)
    );
    assert_eq!(host.peers[0].peer, "user 107");
}

#[test]
fn clients_are_shown_and_rejected_ones_are_reported() {
    let harness = harness();
    harness.apply_ok(&shared(""));
    let client = |export: &str, transport, peer: &str| NbdClient {
        buffer_bytes: 1 << 19,
        export: export.to_owned(),
        transport,
        peer: peer.to_owned(),
    };
    harness.disks.set_clients(vec![
        client("a", NbdTransport::Unix, "process 7 of user 107"),
        client("b", NbdTransport::Tcp, "127.0.0.1:5"),
        client("a", NbdTransport::Tls, "192.0.2.7:6"),
    ]);
    let connections = harness.node.disk("a").unwrap().nbd.unwrap().connections;
    let shown_connections: Vec<_> = connections
        .iter()
        .map(|connection| (connection.transport, connection.peer.as_str()))
        .collect();
    let expected =
        [(DiskNbdTransport::Unix, "process 7 of user 107"), (DiskNbdTransport::Tls, "192.0.2.7:6")];
    assert_eq!(shown_connections, expected);

    let peer = "192.0.2.66:9".to_owned();
    let refusal = NbdNotice::Refused {
        peer,
        reason: "its address is not in `addresses` of the \
                                                      export"
            .to_owned(),
    };
    for _ in 0..2000 {
        harness.disks.notify(ADDRESS, refusal.clone());
    }
    let (peer, reason) = ("192.0.2.67:9".to_owned(), "its export is full".to_owned());
    harness.disks.notify(ADDRESS, NbdNotice::LimitReached { peer, reason });
    let reason = "the name is too long".to_owned();
    harness.disks.notify("/run/nbd.sock", NbdNotice::ExportFailed { disk: "a".to_owned(), reason });
    let events = || harness.events(EventKind::NbdClientRefused.id());
    wait_until("an event is emitted", || !events().is_empty());
    assert!(events()[0].text.contains("192.0.2.66:9"), "{:?}", events()[0]);
    // The remaining rejections are reported at the latest when the daemon stops.
    harness.node.stop();
    let count =
        |event: &Event| event.fields.get("events").map_or(1, |count| count.parse().unwrap());
    assert_eq!(events().iter().map(count).sum::<u64>(), 2000, "every rejection is reported");
    let limited = harness.events(EventKind::NbdLimitReached.id());
    assert!(limited[0].text.contains("192.0.2.67:9"), "{:?}", limited[0]);
    assert!(events().len() < 50, "a flood is bounded: {}", events().len());
}
