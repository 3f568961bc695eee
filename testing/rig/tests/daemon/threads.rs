//! The number of the daemon's threads does not depend on the number of devices.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use suimon_rig::{Daemon, Rig, wait_for_value, wait_until};

const LIMIT: Duration = Duration::from_secs(90);

/// Returns a host file with `devices` NICs, disks over vhost-user, and disks with a separate NBD
/// server.
fn host(rig: &Rig, devices: usize) -> String {
    let store = rig.path("store");
    let mut host = format!(
        "[[switch]]\nname = \"lan\"\nkind = \"private\"\n\
         [[store]]\nname = \"s\"\npath = \"{store}\"\ncapacity_iops = 100000\n"
    );
    for nth in 0..devices {
        let [nic, disk, nbd] =
            ["nic", "disk", "nbd"].map(|kind| rig.path(&format!("{kind}-{nth}")));
        host += &format!(
            "[[nic]]\nname = \"n{nth}\"\nswitch = \"lan\"\nbackend = \"vhost-user\"\n\
             socket = \"{nic}\"\n\
             [[disk]]\nname = \"d{nth}\"\nstore = \"s\"\nformat = \"raw\"\nsize_bytes = \"1 MiB\"\n\
             vhost_user = {{ socket = \"{disk}\" }}\n\
             [[disk]]\nname = \"e{nth}\"\nstore = \"s\"\nformat = \"raw\"\nsize_bytes = \"1 MiB\"\n\
             nbd = {{ socket = \"{nbd}\" }}\n"
        );
    }
    host
}

/// Returns the names of the daemon's threads in ascending order, without io_uring workers, which
/// the kernel starts and limits.
fn threads(daemon: &mut Daemon) -> Vec<String> {
    let folder = format!("/proc/{}/task", daemon.process().id());
    let tasks = std::fs::read_dir(folder).unwrap().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    let mut names: Vec<String> =
        names.map(|name| name.trim().to_owned()).filter(|name| !name.starts_with("iou-")).collect();
    names.sort();
    names
}

/// Connects to the socket of each device without sending data.
fn connect(rig: &Rig, devices: usize) -> Vec<UnixStream> {
    let sockets = (0..devices)
        .flat_map(|nth| ["nic", "disk", "nbd"].map(|kind| rig.path(&format!("{kind}-{nth}"))));
    let connect =
        |socket| wait_for_value("device", LIMIT, || Ok(Some(UnixStream::connect(&socket)?)));
    sockets.map(|socket: String| connect(socket).unwrap()).collect()
}

#[test]
fn the_number_of_threads_does_not_depend_on_the_number_of_devices() {
    let rig = Rig::new().unwrap();
    std::fs::create_dir(rig.path("store")).unwrap();
    let mut daemon = Daemon::start(&rig, &host(&rig, 1)).unwrap();
    connect(&rig, 1);
    let mut with_one = Vec::new();
    // Threads of blocking calls remain for some seconds after the call.
    wait_until("the same threads for a while", LIMIT, || {
        let before = std::mem::replace(&mut with_one, threads(&mut daemon));
        std::thread::sleep(Duration::from_secs(2));
        Ok(before == with_one)
    })
    .unwrap();
    let device_count = 40;
    let file = rig.path("many.toml");
    std::fs::write(&file, host(&rig, device_count)).unwrap();
    daemon.ok(&["apply", "-f", &file]).unwrap();
    let clients = connect(&rig, device_count);
    let mut names = Vec::new();
    let result = wait_until("as many threads as with one device of each kind", LIMIT, || {
        names = threads(&mut daemon);
        Ok(names.len() <= with_one.len())
    });
    result.unwrap_or_else(|error| panic!("{error:#}: {names:?}, with one: {with_one:?}"));
    drop(clients);
}
