//! Disks of the demonstration: their load, and the delivered rates.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;
use suimon_rig::{Daemon, GuestShell, Process, Rig, fio};

/// Program that loads the VM's disk; it bypasses the guest's cache.
pub(crate) const DD: &str = "/usr/bin/dd";
/// Programs that list the VM's devices from inside.
const SHOW: [&str; 2] = ["/usr/bin/lsblk", "/usr/bin/lspci"];
/// Seconds for which `gold` is loaded, and then idle, alternately.
pub(crate) const GOLD_S: u32 = 15;

/// Paths of the disks' files and sockets.
pub(crate) struct Places {
    store: String,
    nbd: String,
}

impl Places {
    pub(crate) fn new(rig: &Rig) -> Result<Self> {
        let store = rig.path("store");
        std::fs::create_dir_all(&store).context("the store's directory")?;
        Ok(Self { store, nbd: rig.path("nbd.sock") })
    }

    pub(crate) fn fill_in(&self, host: &str) -> String {
        host.replace("{store}", &self.store).replace("{nbd}", &self.nbd)
    }

    pub(crate) fn nbd(&self) -> &str {
        &self.nbd
    }

    /// Starts fio on two disks, and the load in the VM.
    pub(crate) fn start_load(&self, rig: &Rig, vm: &mut GuestShell) -> Result<Vec<Process>> {
        let jobs = [
            ("noisy", "--rw=randwrite --bs=8k --iodepth=64 --size=256m --time_based", 3600, 0),
            ("gold", "--rw=randrw --bs=8k --iodepth=16 --size=256m --time_based", GOLD_S, GOLD_S),
        ];
        let mut load = Vec::new();
        for (disk, job, seconds, pause) in jobs {
            let arguments =
                fio_command(rig.folder(), &self.nbd, disk, &format!("{job} --runtime={seconds}"));
            let round = format!("while {arguments} >/dev/null; do sleep {pause}; done");
            let name = format!("fio-{disk}");
            load.push(Process::start(rig, &name, &["sh", "-c", &round])?);
        }
        vm.run(
            "( while dd if=/dev/vda of=/dev/null bs=8k iflag=direct; do :; done ) \
             >/tmp/dd.log 2>&1 &",
        )?;
        Ok(load)
    }
}

fn fio_command(folder: &Path, socket: &str, disk: &str, job: &str) -> String {
    let command = fio::command(folder, socket, disk, job);
    let command_words = std::iter::once(command.get_program()).chain(command.get_args());
    // The time limit of a test's job does not apply to a demonstration.
    let arguments: Vec<String> =
        command_words.skip(2).map(|argument| format!("'{}'", argument.to_string_lossy())).collect();
    arguments.join(" ")
}

/// Returns the programs that the VM needs for its load and to list its devices.
pub(crate) fn programs() -> Vec<PathBuf> {
    SHOW.iter().chain([&DD]).map(PathBuf::from).collect()
}

/// Returns a line with the guaranteed, demanded and delivered rate of each disk.
pub(crate) fn line(daemon: &Daemon) -> Result<String> {
    let flows = daemon.http("GET", "/1.0/qos/flows", None)?.json;
    let mut line = "        disks (8 KiB IOPS, last 5 s)".to_owned();
    for flow in flows.as_array().context("no list of disks")? {
        let last = &flow["last_5_s"];
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        let _ = write!(
            line,
            "  {}: guaranteed {}, demand {}, delivered {}",
            flow["disk"].as_str().unwrap_or("?"),
            number(&last["guaranteed_iops"]),
            number(&last["demand_iops"]),
            number(&last["delivered_iops"])
        );
    }
    Ok(line)
}
