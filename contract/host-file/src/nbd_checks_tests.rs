use crate::{HostConfig, Plan, parse_toml, to_toml};

const STORE: &str = "[[store]]\nname = \"s\"\npath = \"/srv/s\"\n";
const TLS: &str = "tls_certificate = \"/etc/c.pem\"\ntls_key = \"/etc/k.pem\"";

fn disk(name: &str, nbd: &str) -> String {
    format!("[[disk]]\nname = \"{name}\"\nstore = \"s\"\nformat = \"raw\"\n[disk.nbd]\n{nbd}\n")
}

fn read(disks: &str) -> HostConfig {
    parse_toml(&format!("{STORE}{disks}"), None).unwrap()
}

/// Returns the invalid fields with their messages.
fn errors_of(disks: &str) -> Vec<(String, String)> {
    let errors = parse_toml(&format!("{STORE}{disks}"), None).err().unwrap_or_default();
    errors.into_iter().map(|error| (error.field.unwrap_or_default(), error.message)).collect()
}

/// Returns the only invalid field.
fn wrong_field(nbd: &str) -> String {
    let mut errors = errors_of(&disk("a", nbd));
    assert_eq!(errors.len(), 1, "{nbd}: {errors:?}");
    errors.remove(0).0
}

#[test]
fn a_disk_is_offered_on_a_socket_an_address_or_both() {
    for nbd in [
        "socket = \"/run/n\"",
        "socket = \"/run/n\"\nusers = [\"qemu\", \"107\"]\ngroups = [\"kvm\"]",
        "listen = \"127.0.0.1:10809\"",
        "listen = \"[::1]:10809\"\naddresses = [\"::1\"]",
        &format!("socket = \"/run/n\"\nlisten = \"127.0.0.1:10809\"\n{TLS}"),
        &format!(
            "listen = \"192.0.2.1:1\"\n{TLS}\ntls_client_ca = \"/etc/a.pem\"\ntls_clients = [\"vm.example.org\"]"
        ),
        &format!(
            "listen = \"0.0.0.0:1\"\n{TLS}\naddresses = [\"192.0.2.0/24\", \"2001:db8::/32\"]"
        ),
        "listen = \"192.0.2.1:1\"\nplaintext = true\naddresses = [\"192.0.2.7\"]",
    ] {
        let config = read(&disk("a", nbd));
        assert_eq!(parse_toml(&to_toml(&config), None).unwrap(), config, "{nbd}");
    }
}

#[test]
fn contradicting_keys_are_reported() {
    let remote = "listen = \"192.0.2.1:1\"\naddresses = [\"192.0.2.7\"]";
    for (nbd, field) in [
        ("", "nbd.socket"),
        ("users = [\"qemu\"]", "nbd.socket"),
        ("listen = \"127.0.0.1:1\"\nusers = [\"qemu\"]", "nbd.users"),
        ("socket = \"/run/n\"\nplaintext = true", "nbd.plaintext"),
        ("socket = \"/run/n\"\naddresses = [\"::1\"]", "nbd.addresses"),
        ("listen = \"127.0.0.1:0\"", "nbd.listen"),
        ("listen = \"somewhere\"", "nbd.listen"),
        ("listen = \"127.0.0.1:1\"\ntls_key = \"/k\"", "nbd.tls_certificate"),
        ("listen = \"127.0.0.1:1\"\ntls_certificate = \"/c\"", "nbd.tls_key"),
        ("listen = \"127.0.0.1:1\"\ntls_client_ca = \"/c\"", "nbd.tls_client_ca"),
        (remote, "nbd.listen"),
        ("listen = \"192.0.2.1:1\"\nplaintext = true", "nbd.addresses"),
        (&format!("listen = \"192.0.2.1:1\"\n{TLS}"), "nbd.addresses"),
        (&format!("{remote}\n{TLS}\nplaintext = true"), "nbd.plaintext"),
        (&format!("{remote}\n{TLS}\ntls_clients = [\"a\"]"), "nbd.tls_clients"),
        (
            &format!("{remote}\n{TLS}\ntls_client_ca = \"/c\"\ntls_clients = [\"-\"]"),
            "nbd.tls_clients",
        ),
        ("socket = \"/run/n\"\nusers = [\"a:b\"]", "nbd.users"),
        ("socket = \"/run/n\"\ngroups = []", "nbd.groups"),
        ("listen = \"127.0.0.1:1\"\naddresses = [\"192.0.2.0/33\"]", "nbd.addresses"),
    ] {
        assert_eq!(wrong_field(nbd), field, "{nbd}");
    }
}

#[test]
fn disks_that_share_a_server_let_the_same_clients_in() {
    let shared = |of_a: &str, of_b: &str| errors_of(&(disk("a", of_a) + &disk("b", of_b)));
    let socket = "socket = \"/run/n\"";
    assert!(shared(socket, socket).is_empty());
    let errors = shared(socket, &format!("{socket}\nusers = [\"qemu\"]"));
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].0, "nbd.users");
    assert!(
        errors[0].1.starts_with("disk/a uses socket `/run/n` too, with none instead of"),
        "{errors:?}"
    );

    let listen = "listen = \"127.0.0.1:10809\"";
    let errors = shared(listen, &format!("{listen}\n{TLS}"));
    let fields: Vec<&str> = errors.iter().map(|(field, _)| field.as_str()).collect();
    assert_eq!(fields, ["nbd.tls_certificate", "nbd.tls_key"]);
    // The same keys at a socket and at an address may differ.
    assert!(shared(listen, &format!("listen = \"127.0.0.1:2\"\n{TLS}")).is_empty());
    assert!(shared(&format!("{socket}\n{listen}"), listen).is_empty());
}

#[test]
fn an_address_of_the_api_is_taken() {
    let api = "[api]\nlisten = \"127.0.0.1:10809\"\ntls_certificate = \"/c\"\ntls_key = \"/k\"\n\
               token_file = \"/t\"\n";
    let errors = errors_of(&format!("{}{api}", disk("a", "listen = \"127.0.0.1:10809\"")));
    assert_eq!(errors[0].0, "nbd.listen");
    assert!(errors[0].1.contains("is already used by api (its `listen`)"), "{errors:?}");
}

#[test]
fn all_of_it_changes_live() {
    let before = read(&disk("a", "socket = \"/run/n\""));
    let after = read(&disk("a", &format!("listen = \"127.0.0.1:10809\"\n{TLS}")));
    let plan = Plan::between(&before, &after);
    assert_eq!(plan.steps.len(), 1);
    assert_eq!(plan.steps[0].action, crate::PlanAction::ChangeLive);
    let fields: Vec<&str> =
        plan.steps[0].changes.iter().map(|change| change.field.as_str()).collect();
    assert_eq!(fields, ["nbd.listen", "nbd.socket", "nbd.tls_certificate", "nbd.tls_key"]);
}
