//! Starts with stored state after the host file was edited, or while a listener cannot be used.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use suimon_rig::{Daemon, Rig, create_certificates, run, run_any, wait_until};

/// Deadline of conditions that hold within ten seconds on an idle machine.
const LIMIT: Duration = Duration::from_secs(120);
/// Address that no device of the test's namespace has at first.
const ADDRESS: &str = "192.0.2.9";

/// Interval of the daemon's attempts to listen.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

const HOST: &str = "[[switch]]\nname = \"lan\"\nkind = \"private\"\n\
    [[nic]]\nname = \"web\"\nswitch = \"lan\"\nbackend = \"tap\"\ndevice = \"latertap0\"\n\
    mac = \"52:54:00:00:00:01\"\n";
/// Host file that is rejected because of a syntax error.
const INVALID: &str = "[[switch]]\nname = \"lan\"\nkind = \"privat\"\n";
/// Host file that is rejected because the minimum requires `--force`. It does not contain the NIC.
const TOO_MUCH: &str = "[[store]]\nname = \"s\"\npath = \"/srv\"\ncapacity_iops = 100\n\
    [[disk]]\nname = \"d\"\nstore = \"s\"\nformat = \"raw\"\nsize_bytes = \"1 MiB\"\n\
    qos = { min_iops = 500 }\n";

fn change_address(verb: &str) -> Result<()> {
    run(&["ip", "address", verb, &format!("{ADDRESS}/32"), "dev", "lo"]).map(drop)
}

/// Waits until the TCP listener of the API replies with a status to a request with this token.
fn wait_for_listener(token: Option<&str>, status: &str) -> Result<()> {
    let header = format!("Authorization: Bearer {}", token.unwrap_or_default());
    let url = format!("https://{ADDRESS}:8443/1.0");
    let mut arguments = vec!["curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}", url.as_str()];
    if token.is_some() {
        arguments.extend(["-H", header.as_str()]);
    }
    wait_until("the daemon listens", LIMIT, || Ok(run_any(&arguments, LIMIT)?.stdout == status))
}

fn events(daemon: &Daemon, id: &str) -> String {
    daemon.ok(&["event", "list", "--id", id]).unwrap()
}

#[test]
fn a_refused_host_file_leaves_the_stored_state_in_effect_at_a_later_start() {
    Rig::run(|rig| {
        let mut daemon = Daemon::start(rig, HOST)?;
        daemon.wait_up("nic", "web")?;
        for (text, reason) in [(INVALID, "toml:3: switch/lan: kind:"), (TOO_MUCH, "90 %")] {
            fs::write(daemon.file(), text)?;
            // As after a crash: the daemon is killed.
            daemon.restart(rig)?;
            daemon.wait_up("nic", "web")?;
            let reported = events(&daemon, "1008");
            assert!(
                reported.contains(reason) && reported.contains("Correct the file"),
                "{reported}"
            );
        }
        // The file counts as changed until it was applied.
        fs::write(daemon.file(), HOST.replace("00:01", "00:02"))?;
        daemon.restart(rig)?;
        daemon.wait_up("nic", "web")?;
        assert!(daemon.ok(&["nic", "show", "web"])?.contains("52:54:00:00:00:02"));
        assert_eq!(events(&daemon, "1008").lines().count(), 2);
        Ok(())
    });
}

#[test]
fn a_listener_that_cannot_be_used_does_not_keep_a_host_down_and_is_tried_again() {
    Rig::run(|rig| {
        let mut daemon = Daemon::start(rig, HOST)?;
        let folder = create_certificates(Path::new(&rig.path("pki")));
        let token = rig.path("token");
        run(&["sh", "-c", &format!("umask 077; echo 0123456789abcdef >{token}")])?;
        let folder = folder.display();
        let api = format!(
            "{HOST}[api]\nlisten = \"{ADDRESS}:8443\"\ntls_certificate = \"{folder}/server-cert.pem\"\n\
             tls_key = \"{folder}/server-key.pem\"\ntoken_file = \"{token}\"\n"
        );
        fs::write(daemon.file(), &api)?;
        run(&["mv", &token, &rig.path("moved")])?;
        daemon.restart(rig)?;
        daemon.wait_up("nic", "web")?;
        let reported = events(&daemon, "1009");
        assert!(reported.contains("api: token_file:"), "{reported}");

        // The next attempt uses the file and the address.
        run(&["mv", &rig.path("moved"), &token])?;
        change_address("add")?;
        wait_for_listener(None, "401")?;
        wait_for_listener(Some("0123456789abcdef"), "200")?;

        change_address("delete")?;
        daemon.restart(rig)?;
        daemon.wait_up("nic", "web")?;
        let reported = events(&daemon, "1009");
        assert!(reported.contains(&format!("cannot listen on {ADDRESS}:8443")), "{reported}");
        change_address("add")?;
        wait_for_listener(None, "401")?;

        // A listener that is not configured any more is not retried.
        change_address("delete")?;
        daemon.restart(rig)?;
        fs::write(daemon.file(), HOST)?;
        daemon.ok(&["apply", "-f", daemon.file()])?;
        change_address("add")?;
        // Nothing may listen meanwhile.
        std::thread::sleep(3 * RETRY_INTERVAL);
        TcpListener::bind((ADDRESS, 8443))?;
        Ok(())
    });
}
