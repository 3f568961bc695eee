//! Start-up errors of the daemon: each is one line that names the object, the reason and a remedy.
#![forbid(unsafe_code)]

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// User id of `nobody`.
const NOBODY: u32 = 65534;

/// Returns a directory that every user may enter, with a copy of the daemon in it.
fn directory_with_daemon() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_suimond"), directory.path().join("suimond")).unwrap();
    directory
}

/// Returns a command that logs errors only.
fn command(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    command.env_remove("NOTIFY_SOCKET").env("SUIMON_LOG", "error").env("RUST_BACKTRACE", "1");
    command
}

/// Runs a daemon that must fail with `code`, and returns the only line that it prints.
fn error_of(command: &mut Command, code: i32) -> String {
    let output = command.output().unwrap();
    let (stdout, stderr) = (output.stdout, String::from_utf8(output.stderr).unwrap());
    assert_eq!((output.status.code(), stdout), (Some(code), Vec::new()), "{stderr}");
    assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
    stderr
}

fn assert_contains(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "`{part}` is missing: {error}");
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn without_root_the_directory_that_cannot_be_written_is_named() {
    let directory = directory_with_daemon();
    let path = |name: &str| directory.path().join(name).display().to_string();
    // A test without root needs a directory that its user cannot write to.
    std::fs::create_dir(path("closed")).unwrap();
    std::fs::set_permissions(path("closed"), PermissionsExt::from_mode(0o555)).unwrap();
    let (state, socket) = (path("closed/state"), path("closed/run/api.sock"));
    let open = path("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
    let open_state = format!("{open}/state");
    for (state, socket, parts) in [
        (&state, &socket, ["--state-dir: cannot create", &state, "run suimond as root"]),
        (
            &open_state,
            &socket,
            ["--socket: cannot create", &path("closed/run"), "run suimond as root"],
        ),
    ] {
        let mut suimond = command(path("suimond"));
        suimond.args(["--state-dir", state, "--socket", socket]);
        if is_root() {
            suimond.uid(NOBODY).gid(NOBODY);
        }
        let error = error_of(&mut suimond, 1);
        assert_contains(&error, &parts);
        assert_contains(&error, &["Permission denied"]);
    }
}

#[test]
fn a_port_in_use_is_reported_with_the_key_to_change() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (state, socket, config) = (path("state"), path("api.sock"), path("host.toml"));
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap().to_string();
    let (certificate, key, _) = super::support::certificate(directory.path());
    let token = path("token");
    std::fs::write(&token, "0123456789abcdef0123456789abcdef\n").unwrap();
    std::fs::set_permissions(&token, PermissionsExt::from_mode(0o600)).unwrap();
    let api = format!(
        "[api]\nlisten = \"{address}\"\ntls_certificate = \"{}\"\ntls_key = \"{}\"\n\
         token_file = \"{token}\"\n",
        certificate.display(),
        key.display()
    );
    let console = format!("[console]\nlisten = \"{address}\"\n");
    for (section, text) in [("[console]", console), ("[api]", api)] {
        std::fs::write(&config, text).unwrap();
        let mut suimond = command(env!("CARGO_BIN_EXE_suimond"));
        suimond.args(["--config", &config, "--state-dir", &state, "--socket", &socket]);
        let error = error_of(&mut suimond, 2);
        let change = format!("change listen in {section}");
        assert_contains(
            &error,
            &["listen: cannot listen on", &address, "in use", "ss -ltnp", &change],
        );
        assert!(!Path::new(&socket).exists(), "the API's socket is left behind");
    }
}

#[test]
fn a_socket_in_use_is_reported_with_a_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let socket = path("api.sock");
    let _holder = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let mut suimond = command(env!("CARGO_BIN_EXE_suimond"));
    suimond.args(["--state-dir", &path("state"), "--socket", &socket]);
    let error = error_of(&mut suimond, 1);
    assert_contains(&error, &["--socket", &socket, "stop it first or choose another path"]);
}

/// Runs a script as root in a separate mount namespace, with the daemon and a directory as
/// arguments.
fn error_in_mounts(script: &str, directory: &TempDir, code: i32) -> String {
    let mut unshare = command("unshare");
    unshare.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"]);
    unshare.arg(env!("CARGO_BIN_EXE_suimond")).arg(directory.path());
    error_of(&mut unshare, code)
}

#[test]
fn a_full_disk_is_reported_with_a_remedy() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    // The remaining space is too small for a new store.
    let script = "set -e; mount -t tmpfs -o size=64k none \"$2\"; \
                  head -c 40960 /dev/zero >\"$2/ballast\"; \
                  exec \"$1\" --state-dir \"$2/state\" --socket \"$2/api.sock\"";
    let error = error_in_mounts(script, &directory, 1);
    let state = directory.path().join("state").display().to_string();
    assert_contains(&error, &["--state-dir", &state, "No space left on device", "has free space"]);
}

#[test]
fn a_missing_tun_device_is_reported_with_the_module_to_load() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    // Another daemon of this host may use the default folder of VMs.
    let host = format!("[host]\nvm_folder = \"{}\"\n", directory.path().join("vms").display());
    let config = "[[switch]]\nname = \"lan\"\nkind = \"private\"\n[[nic]]\nname = \"web\"\n\
                  switch = \"lan\"\nbackend = \"tap\"\ndevice = \"suimon-none\"\n";
    std::fs::write(directory.path().join("host.toml"), host + config).unwrap();
    let script = "set -e; mount -t tmpfs none /dev/net; \
                  exec \"$1\" --config \"$2/host.toml\" --state-dir \"$2/state\" \
                  --socket \"$2/api.sock\"";
    let error = error_in_mounts(script, &directory, 3);
    assert_contains(&error, &["nic/web", "/dev/net/tun", "modprobe tun"]);
}
