//! Takes from the daemon and from its threads what they do not need, so that
//! whoever gets to run code in them gets little more than the thread itself.
//!
//! Three layers, each for good and each inherited by threads started later:
//!
//! - [`Confinement::confine_process`], before there is a second thread: keeps the
//!   capabilities that the control plane uses, empties the bounding set, sets
//!   no_new_privs, refuses system calls that the daemon never makes
//!   (programs, other processes, kernel modules, mounts, executable memory, …) and,
//!   through Landlock, running any file.
//! - [`Role::FrontEnd`]: threads that read a VM monitor's messages. No capability,
//!   no file, a list of system calls outside of which nothing works. They may start threads,
//!   which inherit this.
//! - [`Role::NbdServer`]: threads that accept NBD clients and carry their TLS, likewise;
//!   certificates are read by other threads.
//! - [`Role::Processor`]: threads that move frames. The same with a shorter list:
//!   what they read and write was opened by the control plane and handed to them.
//!
//! A refused call does not happen; the thread gets `EPERM`, goes on, and the attempt
//! is counted and remembered ([`Confinement::refusals`]): in a thread that has no
//! defect and is in nobody's hand it never occurs.
//!
//! What it does not do: it is no sandbox around a thread's memory. All threads of a
//! process share one address space and one table of descriptors, so it bounds what
//! code in a processor can ask of the kernel, not what it can write over.
//! `docs/explanation/threat-model.md` says what follows from that.
//!
//! Lifecycle: one [`Confinement`] per process; [`ConfinedProcessors`] confines every
//! thread it starts. Nothing is ever given back.
//!
//! Invariants
//! - Whatever the kernel has is used; what it lacks is named in [`Report::lacking`],
//!   and any other failure stops the thread before it does its work.
//! - Filters refuse what they do not know: other architectures' calls end the
//!   process, numbers of the x32 interface are refused.
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
mod processors;
mod refusals;
mod refused_calls;
mod report;
mod warm_up;

pub use confinement::{ConfineError, Confinement, Role};
pub use privileges::KEPT;
pub use processors::ConfinedProcessors;
pub use refusals::{Refusal, wake_pipe as refusal_pipe};
pub use report::{FileRule, LayerReport, Report};
