//! Injected faults: calls that fail, calls that block, and a QEMU that does not reply.

use std::time::{Duration, Instant};

use suimon_ports::{VmError, VmErrorKind};

use super::{FakeVms, World};

/// Maximum duration of a query of a QEMU that does not reply. Longer than tests wait for
/// operations.
const STALL_MAX: Duration = Duration::from_secs(40);

impl FakeVms {
    /// Makes the next call of this name fail: `probe`, `prepare`, `start`, `adopt`, `running`,
    /// `kill`, `give_vf`, `take_vf`, `standby`, `guest`, `send` (outgoing migration), `receive`
    /// (incoming migration), `send_status` (migration status) or `tell` (command to QEMU). Another
    /// name withdraws the failure.
    pub(crate) fn refuse(&self, call: &'static str, kind: VmErrorKind, text: &str) {
        let mut world = self.world();
        world.refusal = Some((call, VmError::new(kind, text)));
        world.refuses_all = false;
    }

    /// Makes all calls of this name fail until the next call of `refuse` or `refuse_all`.
    pub(crate) fn refuse_all(&self, call: &'static str, kind: VmErrorKind, text: &str) {
        self.refuse(call, kind, text);
        self.world().refuses_all = true;
    }

    /// Returns the number of calls that failed because of `refuse` or `refuse_all`.
    pub(crate) fn refused_count(&self) -> u32 {
        self.world().refused
    }

    /// Sets whether calls of `prepare` block, and with them the control thread.
    pub(crate) fn hold_prepare(&self, holds: bool) {
        self.world().holds_prepare = holds;
    }

    /// Sets whether calls of `running` block.
    pub(crate) fn hold_list(&self, holds: bool) {
        self.world().holds_list = holds;
    }

    /// Returns true if a call of `running` blocks.
    pub(crate) fn is_list_blocked(&self) -> bool {
        self.world().held_lists > 0
    }

    /// Returns true if a call of `prepare` blocks.
    pub(crate) fn is_held(&self) -> bool {
        self.world().held > 0
    }

    /// Sets whether queries of QEMU, and attempts to adopt a VM, block until its process ends.
    pub(crate) fn stall_queries(&self, stalls: bool) {
        self.world().stalls = stalls;
    }

    /// Makes calls of this name (`finish` or `send_status`) block while their VM is running, until
    /// the next call of this function.
    pub(crate) fn hold_call(&self, call: Option<&'static str>) {
        self.world().held_call = call;
    }

    /// Makes the next call of this name fail, and later calls block while their VM is running.
    pub(crate) fn refuse_and_hold(&self, call: &'static str, text: &str) {
        let mut world = self.world();
        world.refusal = Some((call, VmError::new(VmErrorKind::Timeout, text)));
        (world.refuses_all, world.held_after_refusal) = (false, Some(call));
    }

    /// Returns true if a query blocks.
    pub(crate) fn is_stalled(&self) -> bool {
        self.world().stalled > 0
    }

    /// Returns the call that is held.
    pub(crate) fn held_call(&self) -> Option<&'static str> {
        self.world().held_call
    }

    /// Returns the number of queries that have blocked, including those that have ended.
    pub(crate) fn stalls_started(&self) -> u32 {
        self.world().stalls_started
    }

    /// Returns the number of VMs that were killed while a query blocked.
    pub(crate) fn kills_while_stalled(&self) -> u32 {
        self.world().kills_while_stalled
    }

    /// Blocks while no QEMU replies and the VM is running.
    pub(super) fn stall(&self, name: &str) {
        self.block(name, |world| world.stalls);
    }

    /// Blocks while this call is held and the VM is running.
    pub(super) fn hold(&self, call: &'static str, name: &str) {
        self.block(name, |world| world.held_call == Some(call));
    }

    fn block(&self, name: &str, is_blocked: impl Fn(&World) -> bool) {
        // Limited, so that a failed test ends.
        let limit = Instant::now() + STALL_MAX;
        let is_stalled = || {
            let world = self.world();
            is_blocked(&world) && world.running.contains_key(name)
        };
        if !is_stalled() {
            return;
        }
        {
            let mut world = self.world();
            world.stalled += 1;
            world.stalls_started += 1;
        }
        while is_stalled() && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.world().stalled -= 1;
    }

    pub(super) fn check(&self, call: &'static str) -> Result<(), VmError> {
        let mut world = self.world();
        let refusal = world.refusal.clone().filter(|(refused_call, _)| *refused_call == call);
        if !world.refuses_all && refusal.is_some() {
            world.refusal = None;
        }
        world.refused += u32::from(refusal.is_some());
        if refusal.is_some() && world.held_after_refusal.is_some() {
            world.held_call = world.held_after_refusal.take();
        }
        refusal.map_or(Ok(()), |(_, error)| Err(error))
    }
}
