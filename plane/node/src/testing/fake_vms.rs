//! VM host without processes: records commands and simulates guests.

mod faults;
mod guests;
mod host;
mod migration;
mod vfs;
mod vm;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use suimon_ports::{
    MigrationTransferPhase, Vm, VmError, VmErrorKind, VmIdentity, VmObserver, VmRunState, VmSpec,
};

use self::vm::FakeVm;
use crate::VmDependencies;

/// VM host. Clones share the state, which survives daemons.
#[derive(Clone, Default)]
pub(crate) struct FakeVms(Arc<Mutex<World>>);

#[derive(Default)]
struct World {
    boot_id: String,
    folders: BTreeSet<PathBuf>,
    running: BTreeMap<String, Guest>,
    processes: u32,
    told: Vec<String>,
    /// Method whose next call fails, or all of whose calls fail with `refuses_all`, and the error.
    refusal: Option<(&'static str, VmError)>,
    refuses_all: bool,
    /// Number of calls that failed because of `refusal`.
    refused: u32,
    /// True while calls of `prepare` block.
    holds_prepare: bool,
    /// Number of calls of `prepare` that block.
    held: u32,
    /// True while calls of `running` block.
    holds_list: bool,
    /// Number of calls of `running` that block.
    held_lists: u32,
    has_agent: bool,
    /// True if guests' drivers do not support VFs.
    takes_no_vfs: bool,
    /// True while guests boot: no driver has initialized their NICs.
    is_booting: bool,
    /// True while QEMU keeps VFs open that were unplugged.
    holds_vfs: bool,
    /// Number of attempts to take back a VF that is held.
    held_vfs: u32,
    /// True if requests to return a VF are not answered in time.
    ignores_returns: bool,
    /// VFs that a process other than the VMs has open.
    open_elsewhere: BTreeSet<String>,
    /// Number of queries of the failover state of NICs.
    standby_queries: u32,
    /// True while no QEMU replies to queries.
    stalls: bool,
    /// Call that blocks while its VM is running.
    held_call: Option<&'static str>,
    /// Call that is held from the next call that fails because of `refusal` on.
    held_after_refusal: Option<&'static str>,
    /// Number of calls that block because of `stalls` or `held_call`.
    stalled: u32,
    /// Number of calls that have blocked since the start.
    stalls_started: u32,
    /// Number of kills while a query of a VM blocked.
    kills_while_stalled: u32,
    /// Set if guests release devices on request; called before the release is reported.
    on_unplug: Option<Arc<dyn Fn() + Send + Sync>>,
    /// VFs bound to `vfio-pci`.
    vfs: BTreeSet<String>,
    /// True if outgoing migrations stay in the copying phase.
    holds_memory: bool,
    /// Number of outgoing migrations started.
    sends: u32,
    /// Uptime reported for each VM.
    uptime: Duration,
}

struct Guest {
    spec: VmSpec,
    process: u32,
    cpus: u16,
    state: VmRunState,
    observer: Option<Arc<dyn VmObserver>>,
    /// VFs in the guest, by NIC.
    vfs: BTreeMap<String, String>,
    was_paused: bool,
    /// True if the VM is paused because a write found no space.
    waits_for_space: bool,
    /// True if a write finds no space again after each resume.
    is_out_of_space: bool,
    /// True if a write finds no space immediately before the next pause.
    finds_no_space_at_pause: bool,
    /// Phase of the migration, outgoing or incoming.
    sent: MigrationTransferPhase,
    /// Connection of the migration; closed with the guest.
    line: Option<UnixStream>,
}

impl FakeVms {
    pub(crate) fn parts(&self) -> VmDependencies {
        VmDependencies { host: Arc::new(self.clone()), boot_id: self.world().boot_id.clone() }
    }

    /// Simulates a reboot of the host: no VM is running.
    pub(crate) fn reboot(&self, boot_id: &str) {
        let mut world = self.world();
        world.boot_id = boot_id.to_owned();
        world.running.clear();
        world.folders.clear();
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    fn handle(&self, name: &str) -> Box<dyn Vm> {
        Box::new(FakeVm { host: self.clone(), name: name.to_owned() })
    }
}

fn identity(name: &str, guest: &Guest) -> VmIdentity {
    let folder = guest.spec.folder.clone();
    VmIdentity { name: name.to_owned(), folder, pid: guest.process, started_ticks: 1 }
}

fn not_running() -> VmError {
    VmError::new(VmErrorKind::NotRunning, "it does not exist any more")
}
