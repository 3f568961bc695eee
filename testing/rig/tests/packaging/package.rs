//! The Debian package under a running systemd: installed, used, upgraded over an administrator's
//! changes, removed, purged.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use suimon_rig::{Rig, ServiceHost, program, run_any, wait_until};

const DAEMON: &str = "suimond.service";
const LAUNCHER: &str = "suimon-launcher.service";
const LAB: &str = "suimon-lab.service";
const PATIENCE: Duration = Duration::from_secs(180);
const LAN: &str = "[[switch]]\nname = \"lan\"\nkind = \"private\"\n";

/// Builds the package from the programs under test, and returns its path.
fn package(rig: &Rig) -> PathBuf {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/deb");
    let programs = PathBuf::from(program("suimond").unwrap());
    let programs = programs.parent().unwrap().to_string_lossy().into_owned();
    // Compressing all programs takes minutes on a loaded machine.
    let arguments = [script, &programs, &rig.path("package")];
    let output = run_any(&arguments, Duration::from_secs(1200)).unwrap();
    assert!(output.is_ok(), "{}{}", output.stdout, output.stderr);
    PathBuf::from(output.stdout.trim())
}

fn is_active(host: &ServiceHost, unit: &str) -> bool {
    host.property(unit, "ActiveState").unwrap() == "active"
}

/// Returns the paths with `suimon` in their names, outside of logs and mounts.
fn left(host: &ServiceHost) -> String {
    let find_command = ["find", "/etc", "/usr", "/var/lib", "-xdev", "-iname", "*suimon*"];
    host.run(&find_command).unwrap()
}

/// Compressing the programs takes about a minute.
mod full {
    #[test]
    fn a_package_is_installed_upgraded_and_removed_without_a_trace() {
        super::install_upgrade_and_remove();
    }
}

fn install_upgrade_and_remove() {
    let rig = Rig::new().unwrap();
    let package = package(&rig);
    let host = ServiceHost::boot_bare(&rig).unwrap();
    assert_eq!(left(&host), "");
    fs::copy(&package, host.file("/srv/suimon.deb")).unwrap();
    let dpkg = |arguments: &[&str]| host.run(&[&["dpkg"], arguments].concat()).unwrap();

    dpkg(&["--install", "/srv/suimon.deb"]);
    for unit in [LAUNCHER, DAEMON] {
        assert!(is_active(&host, unit), "{unit}: {}", host.journal(unit).unwrap());
    }
    for unit in [DAEMON, LAUNCHER] {
        assert_eq!(host.run(&["systemctl", "is-enabled", unit]).unwrap().trim(), "enabled");
    }
    assert!(host.run(&["suimon", "host", "show"]).unwrap().contains("confined  full"));
    assert_eq!(dpkg(&["--verify", "suimon"]), "", "all files are as they were packed");
    // The lab is installed but inactive until an administrator starts it.
    let enabled = host.run_any(&["systemctl", "is-enabled", LAB]).unwrap();
    assert_eq!((enabled.stdout.trim(), is_active(&host, LAB)), ("disabled", false));
    assert!(host.run(&["suimon", "lab", "list"]).unwrap().contains("vmq-teaming"));
    host.run(&["test", "-x", "/usr/lib/suimon/sim"]).unwrap();
    host.run(&["systemctl", "start", LAB]).unwrap();
    let is_working = || Ok(host.file("/var/lib/suimon/lab/worker.json").exists());
    wait_until("the lab works", PATIENCE, is_working).unwrap();
    for page in [
        "man/man1/suimon.1.gz",
        "man/man1/suimon-lab.1.gz",
        "bash-completion/completions/suimon",
        "doc/suimon/html/index.html",
        "doc/suimon/html/docs/how-to/install.html",
        "doc/suimon/html/docs/experiments.html",
    ] {
        host.run(&["test", "-s", &format!("/usr/share/{page}")]).unwrap();
    }
    let checked = host.run_any(&["suimon", "check", "--file", "/etc/suimon/host.toml"]).unwrap();
    assert!(checked.is_ok(), "{checked:?}");

    // The administrator's changes and the daemon's state are kept.
    fs::write(host.file("/etc/suimon/host.toml"), LAN).unwrap();
    host.run(&["systemctl", "reload", DAEMON]).unwrap();
    host.run(&["suimon", "store", "create", "s", "--path", "/run/suimon"]).unwrap();
    let before = host.property(DAEMON, "MainPID").unwrap();
    dpkg(&["--force-confold", "--install", "/srv/suimon.deb"]);
    assert_ne!(host.property(DAEMON, "MainPID").unwrap(), before, "the new program runs");
    assert!(host.run(&["suimon", "switch", "show", "lan"]).unwrap().contains("lan"));
    assert!(host.run(&["suimon", "store", "show", "s"]).unwrap().contains("/run/suimon"));

    dpkg(&["--remove", "suimon"]);
    assert!([DAEMON, LAUNCHER, LAB].iter().all(|unit| !is_active(&host, unit)));
    assert!(!Path::new(&host.file("/usr/bin/suimond")).exists());
    assert!(host.file("/etc/suimon/host.toml").exists(), "configuration is the administrator's");
    assert!(host.file("/var/lib/suimon").exists());
    // A store below the state directory belongs to the administrator and is kept.
    let store = host.file("/var/lib/suimon/store");
    fs::create_dir(&store).unwrap();
    fs::write(store.join("web.vhdx"), "kept").unwrap();
    dpkg(&["--purge", "suimon"]);
    assert_eq!(fs::read_to_string(store.join("web.vhdx")).unwrap(), "kept");
    assert_eq!(left(&host), "/var/lib/suimon\n");
    fs::remove_dir_all(host.file("/var/lib/suimon")).unwrap();
    assert_eq!(left(&host), "");
}
