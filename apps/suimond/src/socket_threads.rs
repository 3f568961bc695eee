//! Threads that serve sockets of devices, with their confinement.

use std::io;
use std::sync::Arc;

use suimon_confine::{Confinement, ThreadRole};
use suimon_socket_runtime::{SocketRuntime, ThreadHooks};
use suimon_vhost_user::VhostUserThreads;

/// Largest number of threads that negotiate with NBD clients and carry their TLS.
const NBD_WORKERS_MAX: usize = 8;

/// Threads that serve the sockets of all devices of a host. Their number is independent of the
/// number of devices.
#[derive(Clone)]
pub struct SocketThreads {
    /// Threads for NICs and disks over vhost-user, and for NICs emulated by QEMU.
    pub vhost_user: VhostUserThreads,
    /// Threads for NBD clients: one per CPU, at most 8.
    pub nbd: SocketRuntime,
}

impl SocketThreads {
    /// Starts the threads, confined to their roles.
    ///
    /// # Errors
    /// The host has no thread or descriptor left, or the kernel refuses a confinement.
    pub fn new(confinement: &Confinement) -> io::Result<Self> {
        let cpus = std::thread::available_parallelism().map_or(1, core::num::NonZero::get);
        let nbd = hooks(confinement, ThreadRole::NbdServer);
        Ok(Self {
            vhost_user: VhostUserThreads::new(hooks(confinement, ThreadRole::FrontEnd))?,
            nbd: SocketRuntime::new("nbd", cpus.min(NBD_WORKERS_MAX), nbd)?,
        })
    }
}

/// Returns hooks that confine threads of a runtime to `role` when they start.
fn hooks(confinement: &Confinement, role: ThreadRole) -> ThreadHooks {
    let (confine, mark) = (confinement.clone(), confinement.clone());
    ThreadHooks {
        on_worker_start: Arc::new(move || confine.confine_thread(role).map_err(Into::into)),
        on_blocking_start: Arc::new(move || mark.label_inheriting_thread(role)),
    }
}
