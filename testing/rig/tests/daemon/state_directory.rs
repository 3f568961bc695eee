//! A state directory that is full or read-only when the daemon starts.

use std::fs;
use std::time::Duration;

use suimon_rig::{Daemon, Mounted, Rig, run, wait_until};

/// Deadline of conditions that hold within ten seconds on an idle machine.
const LIMIT: Duration = Duration::from_secs(120);

const HOST: &str = "[[switch]]\nname = \"lan\"\nkind = \"private\"\n\
    [[nic]]\nname = \"web\"\nswitch = \"lan\"\nbackend = \"tap\"\ndevice = \"statetap0\"\n\
    mac = \"52:54:00:00:00:01\"\n";
/// Lines of 100 bytes that make a host file larger than the unused space of a new state file.
const PADDING_LINES: usize = 9_000;
const CHANGED: &str = "[[switch]]\nname = \"lan\"\nkind = \"private\"\n\
    [[switch]]\nname = \"more\"\nkind = \"private\"\n";

/// Mounts a tmpfs of 6 MiB over the state directory of a stopped daemon, with the same content.
/// Unused parts of the state file are holes, so that writes to them need space.
fn move_to_tmpfs(daemon: &Daemon) -> Mounted {
    let (state, file) = (daemon.path("state"), daemon.path("state/state.redb"));
    let copy = daemon.path("copy.redb");
    fs::copy(&file, &copy).unwrap();
    run(&["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", &state]).unwrap();
    let mounted = Mounted::taken_over(&state);
    run(&["cp", "--sparse=always", &copy, &file]).unwrap();
    mounted
}

fn writable(daemon: &Daemon) -> bool {
    daemon.json(&["host", "show"]).unwrap()["state_store"]["writable"].as_bool().unwrap()
}

fn has_event(daemon: &Daemon, id: &str) -> bool {
    daemon.ok(&["event", "list", "--id", id]).unwrap().contains(id)
}

/// The stored configuration is in effect, and a changed host file is neither applied nor fatal.
fn check_unwritable(daemon: &mut Daemon, reason: &str) {
    daemon.wait_up("nic", "web").unwrap();
    assert!(!writable(daemon));
    let output = daemon.ok(&["host", "show"]).unwrap();
    assert!(output.contains("not writable") && output.contains(reason), "{output}");
    assert!(has_event(daemon, "1006") && has_event(daemon, "1008"));
    assert!(daemon.ok(&["metrics"]).unwrap().contains("suimon_state_writable 0"));
    let output = daemon.cli(&["switch", "create", "other", "--kind", "private"]).unwrap();
    assert!(!output.is_ok() && output.stderr.contains(reason), "{output:?}");
    daemon.wait_up("nic", "web").unwrap();
}

#[test]
fn a_daemon_starts_with_its_stored_state_on_a_full_state_directory() {
    Rig::run(|rig| {
        let mut daemon = Daemon::start(rig, HOST)?;
        daemon.wait_up("nic", "web")?;
        daemon.stop()?;
        let mounted = move_to_tmpfs(&daemon);
        let filler = daemon.path("state/filler");
        fs::write(&filler, vec![0; 16 << 20]).unwrap_err();
        // Small changes may fit into used parts. The text of the host file is stored.
        let padding = format!("# {}\n", "x".repeat(98)).repeat(PADDING_LINES);
        fs::write(daemon.file(), format!("{CHANGED}{padding}"))?;
        // The first start follows a clean stop, the second one a crash.
        for _ in 0..2 {
            daemon.restart(rig)?;
            daemon.wait_up("nic", "web")?;
            assert!(has_event(&daemon, "1008"));
            assert!(!daemon.ok(&["switch", "list"])?.contains("more"));
        }
        fs::remove_file(&filler)?;
        wait_until("the state directory is written", LIMIT, || Ok(writable(&daemon)))?;
        daemon.ok(&["apply", "--file", daemon.file()])?;
        daemon.restart(rig)?;
        assert!(has_event(&daemon, "1008"), "events of the full directory are stored");
        assert!(daemon.ok(&["switch", "list"])?.contains("more"));
        assert!(!daemon.ok(&["nic", "list"])?.contains("web"));
        daemon.stop()?;
        drop(mounted);
        Ok(())
    });
}

#[test]
fn a_daemon_starts_with_its_stored_state_on_a_read_only_state_directory() {
    Rig::run(|rig| {
        let mut daemon = Daemon::start(rig, HOST)?;
        daemon.wait_up("nic", "web")?;
        daemon.stop()?;
        let mounted = move_to_tmpfs(&daemon);
        let state = daemon.path("state");
        run(&["mount", "-o", "remount,ro", &state])?;
        fs::write(daemon.file(), CHANGED)?;
        daemon.restart(rig)?;
        check_unwritable(&mut daemon, "Read-only file system");
        run(&["mount", "-o", "remount,rw", &state])?;
        wait_until("the state directory is written", LIMIT, || Ok(writable(&daemon)))?;
        daemon.ok(&["apply", "--file", daemon.file()])?;
        assert!(daemon.ok(&["switch", "list"])?.contains("more"));
        daemon.stop()?;
        drop(mounted);
        Ok(())
    });
}

/// Without a stored state there is nothing to start with.
#[test]
fn a_first_start_needs_a_writable_state_directory() {
    Rig::run(|rig| {
        let mut daemon = Daemon::start(rig, HOST)?;
        daemon.stop()?;
        let mounted = move_to_tmpfs(&daemon);
        fs::remove_file(daemon.path("state/state.redb"))?;
        run(&["mount", "-o", "remount,ro", &daemon.path("state")])?;
        let error = daemon.restart(rig).unwrap_err();
        assert!(format!("{error:#}").contains("Read-only file system"), "{error:#}");
        drop(mounted);
        Ok(())
    });
}
