//! VM host: starts, adopts and kills VMs, and assigns VFs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_ports::{
    MigrationTransferPhase, Vm, VmBoot, VmError, VmErrorKind, VmHost, VmIdentity, VmObserver,
    VmRunState, VmSpec,
};
use suimon_quantity::PciAddress;

use super::{FakeVms, Guest, identity, not_running};
use crate::testing::DEADLINE;

impl VmHost for FakeVms {
    fn uefi_firmware(&self) -> Option<VmBoot> {
        None
    }

    fn cpu_flags(&self) -> Vec<String> {
        vec!["fpu".to_owned()]
    }

    fn running_vms(&self) -> Result<Vec<VmIdentity>, VmError> {
        self.check("running")?;
        self.world().held_lists += 1;
        // Limited, so that a failed test ends.
        let limit = Instant::now() + DEADLINE;
        while self.world().holds_list && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.world().held_lists -= 1;
        Ok(self.world().running.iter().map(|(name, guest)| identity(name, guest)).collect())
    }

    fn probe(&self, _spec: &VmSpec) -> Result<(), VmError> {
        self.check("probe")
    }

    fn create_folder(&self, folder: &Path, _user: u32) -> Result<(), VmError> {
        self.world().held += 1;
        // Limited, so that a failed test ends.
        let limit = Instant::now() + DEADLINE;
        while self.world().holds_prepare && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.world().held -= 1;
        self.check("prepare")?;
        let mut world = self.world();
        if world.running.values().any(|guest| guest.spec.folder == folder) {
            return Err(VmError::new(VmErrorKind::AlreadyRunning, "a VM runs in it"));
        }
        world.folders.insert(folder.to_owned());
        Ok(())
    }

    fn start(&self, spec: &VmSpec, observer: Arc<dyn VmObserver>) -> Result<Box<dyn Vm>, VmError> {
        self.check("start")?;
        let mut world = self.world();
        assert!(world.folders.contains(&spec.folder), "a VM has its folder before it starts");
        world.processes += 1;
        let process = world.processes;
        let guest = Guest {
            spec: spec.clone(),
            process,
            cpus: spec.cpus,
            state: match spec.migration_requirements {
                None => VmRunState::Running,
                Some(_) => VmRunState::Paused,
            },
            observer: Some(observer),
            vfs: BTreeMap::new(),
            was_paused: false,
            waits_for_space: false,
            is_out_of_space: false,
            finds_no_space_at_pause: false,
            sent: MigrationTransferPhase::None,
            line: None,
        };
        assert!(world.running.insert(spec.name.clone(), guest).is_none(), "the VM runs already");
        drop(world);
        Ok(self.handle(&spec.name))
    }

    fn adopt(
        &self,
        identity: &VmIdentity,
        observer: Arc<dyn VmObserver>,
    ) -> Result<Box<dyn Vm>, VmError> {
        self.check("adopt")?;
        self.stall(&identity.name);
        let mut world = self.world();
        let guest = world.running.get_mut(&identity.name);
        let guest = guest.filter(|guest| guest.process == identity.pid).ok_or_else(not_running)?;
        guest.observer = Some(observer);
        drop(world);
        Ok(self.handle(&identity.name))
    }

    fn kill(&self, identity: &VmIdentity) -> Result<(), VmError> {
        self.check("kill")?;
        let mut world = self.world();
        let is_it =
            |guest: &Guest| guest.process == identity.pid && guest.spec.folder == identity.folder;
        if !world.running.get(&identity.name).is_some_and(is_it) {
            return Err(not_running());
        }
        world.running.remove(&identity.name);
        world.kills_while_stalled += u32::from(world.stalled > 0);
        Ok(())
    }

    fn assign_vf(
        &self,
        identity: &VmIdentity,
        vf: PciAddress,
        memory_bytes: u64,
    ) -> Result<(), VmError> {
        self.check("give_vf")?;
        let mut world = self.world();
        assert!(world.running.contains_key(&identity.name) && memory_bytes > 0);
        if world.open_elsewhere.contains(&vf.to_string()) {
            return Err(VmError::new(VmErrorKind::Busy, "another process has it open"));
        }
        assert!(world.vfs.insert(vf.to_string()), "{vf} is given twice");
        Ok(())
    }

    fn reclaim_vf(&self, _vm: &str, vf: PciAddress) -> Result<(), VmError> {
        self.check("take_vf")?;
        let mut world = self.world();
        if world.ignores_returns {
            world.held_vfs += 1;
            return Err(VmError::new(VmErrorKind::Timeout, "no response"));
        }
        if world.holds_vfs {
            world.held_vfs += 1;
            return Err(VmError::new(VmErrorKind::Busy, "it is open"));
        }
        let mut assigned = world.running.values().flat_map(|guest| guest.vfs.values());
        assert!(assigned.all(|address| *address != vf.to_string()), "a guest has {vf}");
        world.vfs.remove(&vf.to_string());
        Ok(())
    }

    fn remove_folder(&self, folder: &Path) -> Result<(), VmError> {
        let mut world = self.world();
        if world.running.values().any(|guest| guest.spec.folder == folder) {
            return Err(VmError::new(VmErrorKind::AlreadyRunning, "a VM runs in it"));
        }
        world.folders.remove(folder);
        Ok(())
    }
}
