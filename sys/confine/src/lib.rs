//! Confinement of the daemon and its threads to the rights that they need, so that an attacker who
//! executes code in them gains little.
//!
//! Three layers, each irrevocable and inherited by threads started later:
//!
//! - [`Confinement::confine_process`], before there is a second thread: keeps the capabilities of
//!   the control plane, empties the bounding set, sets no_new_privs, rejects system calls that the
//!   daemon never makes (programs, other processes, kernel modules, mounts, executable memory, …)
//!   and, through Landlock, execution of any file and writes to files of `/proc` and `/sys`.
//! - [`ThreadRole::FrontEnd`]: threads that read a VM monitor's messages. No capability, no file
//!   access, and an allow list of system calls. They may start threads, which inherit the
//!   confinement.
//! - [`ThreadRole::NbdServer`]: threads that accept NBD clients and carry their TLS, likewise;
//!   other threads read the certificates.
//! - [`ThreadRole::Worker`]: workers, which move frames. The same with a shorter list: the control
//!   plane opened what they read and write, and handed it to them.
//!
//! A rejected call is not executed; the thread gets `EPERM` and continues, and the attempt is
//! counted and recorded ([`Confinement::rejected_calls`]). In a thread without defects that is not
//! under attack, it never occurs.
//!
//! The launcher of VMs is a process of its own, which executes QEMU as other users:
//! [`confine_launcher`] leaves it the capabilities for this.
//!
//! Outside of the scope: isolation of memory. All threads of a process share one address space and
//! one descriptor table. The confinement limits the system calls of an attacker, not the memory
//! that can be overwritten. `docs/explanation/threat-model.md` describes the consequences.
//!
//! Life cycle: one [`Confinement`] per process; [`ConfinedWorkers`] confines every worker that
//! it starts. No right is ever restored.
//!
//! Invariants
//! - Every available feature of the kernel is used. [`ConfinementReport::missing`] names those that
//!   are missing; any other failure stops the thread before it does its work.
//! - Filters reject unknown interfaces: calls of other architectures end the process, numbers of
//!   the x32 interface are rejected.
//!
//! Sources: `seccomp(2)`, `capabilities(7)`, `landlock(7)`, and the kernel's
//! `Documentation/userspace-api/seccomp_filter.rst`.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod allowed_calls;
mod call_names;
mod confinement;
mod files;
mod filter;
mod privileges;
mod refused_calls;
mod rejected_calls;
mod report;
mod warm_up;
mod workers;

pub use confinement::{ConfineError, Confinement, ThreadRole, confine_launcher};
pub use privileges::RETAINED_CAPABILITIES;
pub use rejected_calls::{RejectedCalls, wake_pipe as refusal_pipe};
pub use report::{ConfinementReport, LandlockEffect, LayerReport};
pub use workers::ConfinedWorkers;
