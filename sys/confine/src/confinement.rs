//! Installation of the confinement layers: seccomp filters, capabilities and Landlock.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use seccompiler::BpfProgram;
use thiserror::Error;

use crate::filter::{Call, FilterKind, compile, install};
use crate::privileges::{self, RemainingCapabilities};
use crate::rejected_calls::{self, RejectedCalls};
use crate::report::{ConfinementReport, LandlockEffect, LayerReport};
use crate::warm_up::warm_up;
use crate::{allowed_calls, files, refused_calls};

/// Role of a thread, which determines its permitted system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadRole {
    /// Data-plane worker: moves frames between queues that the control plane has opened.
    Worker,
    /// Thread that reads messages of VM monitors on sockets that the control plane has opened. The
    /// threads for blocking calls that it starts inherit its confinement.
    FrontEnd,
    /// Thread that accepts NBD clients. The threads for blocking calls that it starts inherit its
    /// confinement.
    NbdServer,
}

impl ThreadRole {
    /// Returns the label of the role in reports of rejected calls.
    const fn label(self) -> u32 {
        match self {
            Self::Worker => 1,
            Self::FrontEnd => 2,
            Self::NbdServer => 3,
        }
    }
}

/// Reason why a layer of the confinement (seccomp filter, capabilities, Landlock) could not be
/// installed. A layer that the kernel does not support is skipped and is not an error.
#[derive(Debug, Error)]
pub enum ConfineError {
    /// A filter could not be compiled.
    #[error("the system call filter (seccomp) cannot be created: {0}")]
    Compile(#[from] seccompiler::Error),
    /// The signal handler that records rejected calls could not be installed.
    #[error("the handler of SIGSYS cannot be installed: {0}")]
    Handler(#[source] io::Error),
    /// Changing capabilities or no_new_privs failed.
    #[error("capabilities cannot be dropped: {0}")]
    Privileges(#[from] Errno),
    /// Landlock rejected a rule or the restriction.
    #[error("Landlock cannot be set up: {0}")]
    Landlock(#[from] landlock::RulesetError),
    /// The filter could not be installed.
    #[error("the system call filter (seccomp) cannot be installed: {0}")]
    Filter(#[source] io::Error),
    /// The process has several threads; layers apply to the calling thread only.
    #[error("the process already has {threads} threads; confine it while it has one")]
    MultipleThreads {
        /// Current number of threads of the process.
        threads: usize,
    },
}

impl From<ConfineError> for io::Error {
    fn from(error: ConfineError) -> Self {
        Self::other(error)
    }
}

/// Confinement of this process. Clones share its filters and its report.
#[derive(Clone)]
pub struct Confinement(Arc<Inner>);

struct Inner {
    /// `None` if confinement is disabled.
    lists: Option<Lists>,
    report: Mutex<ConfinementReport>,
}

/// Compiled seccomp filter, and the number of system calls in its list.
struct Program {
    filter: BpfProgram,
    calls: usize,
}

struct Lists {
    process: Program,
    missing: Program,
    worker: Program,
    front_end: Program,
    nbd_server: Program,
}

impl Program {
    fn new(list: FilterKind, calls: &[Call]) -> Result<Self, seccompiler::Error> {
        Ok(Self { filter: compile(list, calls)?, calls: calls.len() })
    }
}

impl Confinement {
    /// Compiles the filters and installs the handler of rejected calls; nothing is confined yet.
    ///
    /// # Errors
    /// The architecture is not supported, or the process has no descriptor left.
    pub fn new() -> Result<Self, ConfineError> {
        rejected_calls::install().map_err(ConfineError::Handler)?;
        let lists = Lists {
            process: Program::new(FilterKind::Rejected, &refused_calls::process_calls())?,
            missing: Program::new(
                FilterKind::FailsAsMissing,
                &refused_calls::calls_failing_as_missing(),
            )?,
            worker: Program::new(FilterKind::Allowed, &allowed_calls::worker_calls())?,
            front_end: Program::new(FilterKind::Allowed, &allowed_calls::front_end_calls())?,
            nbd_server: Program::new(FilterKind::Allowed, &allowed_calls::nbd_server_calls())?,
        };
        Ok(Self(Arc::new(Inner { lists: Some(lists), report: Mutex::default() })))
    }

    /// Creates a disabled confinement, for debugging.
    pub fn off() -> Self {
        let report = ConfinementReport { is_off: true, ..ConfinementReport::default() };
        Self(Arc::new(Inner { lists: None, report: Mutex::new(report) }))
    }

    /// Confines the process: the calling thread and all threads that it starts. Must be called
    /// while there is no other thread. Of the files below `/sys`, only `sysfs_files` stay writable.
    ///
    /// # Errors
    /// There are other threads, or the kernel failed for a reason other than a missing feature.
    /// Layers that were installed stay in effect.
    pub fn confine_process(&self, sysfs_files: &[PathBuf]) -> Result<(), ConfineError> {
        let Some(lists) = &self.0.lists else { return Ok(()) };
        let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
        if threads != 1 {
            return Err(ConfineError::MultipleThreads { threads });
        }
        let dropped = privileges::keep_control_plane_capabilities()?;
        privileges::prevent_new_privileges()?;
        let files = files::restrict_process_files(sysfs_files)?;
        let is_filtered = filter(&[&lists.process, &lists.missing])?;
        let layer = layer(dropped, is_filtered, &lists.process, files);
        self.report_mut().process = Some(layer);
        Ok(())
    }

    /// Confines the calling thread.
    ///
    /// # Errors
    /// The kernel failed for a reason other than a missing feature; the thread must not do its
    /// work.
    pub fn confine_thread(&self, role: ThreadRole) -> Result<(), ConfineError> {
        let Some(lists) = &self.0.lists else { return Ok(()) };
        let program = match role {
            ThreadRole::Worker => &lists.worker,
            ThreadRole::FrontEnd => &lists.front_end,
            ThreadRole::NbdServer => &lists.nbd_server,
        };
        warm_up();
        rejected_calls::set_thread_label(role.label());
        let dropped = privileges::drop_all_capabilities()?;
        privileges::prevent_new_privileges()?;
        let files = files::restrict_thread_files()?;
        // After the allow list, no other filter can be installed.
        let is_filtered = match role {
            ThreadRole::NbdServer | ThreadRole::FrontEnd => filter(&[&lists.missing, program])?,
            ThreadRole::Worker => filter(&[program])?,
        };
        let layer = layer(dropped, is_filtered, program, files);
        let mut report = self.report_mut();
        match role {
            ThreadRole::Worker => report.workers = Some(layer),
            ThreadRole::FrontEnd => report.front_ends = Some(layer),
            ThreadRole::NbdServer => report.nbd_servers = Some(layer),
        }
        Ok(())
    }

    /// Sets the role under which rejected calls of the calling thread are reported. For threads
    /// that a confined thread of this role has started: they inherit its confinement, but not the
    /// label.
    pub fn label_inheriting_thread(&self, role: ThreadRole) {
        rejected_calls::set_thread_label(role.label());
    }

    /// Returns the layers in effect.
    pub fn report(&self) -> ConfinementReport {
        ConfinementReport { rejected_calls: rejected_calls::count(), ..self.report_mut().clone() }
    }

    /// Returns the number of rejected calls and the last one; `None` if no call was rejected yet.
    pub fn rejected_calls(&self) -> Option<RejectedCalls> {
        rejected_calls::last()
    }

    fn report_mut(&self) -> MutexGuard<'_, ConfinementReport> {
        self.0.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reduces the capabilities of the calling process, the launcher of VMs, to those that it needs,
/// and prevents programs that it executes from gaining others.
///
/// # Errors
/// The error of the kernel.
pub fn confine_launcher() -> Result<(), ConfineError> {
    privileges::keep_launcher_capabilities()?;
    Ok(privileges::prevent_new_privileges()?)
}

/// Installs filters for the calling thread. Returns false if the kernel does not support them.
///
/// # Errors
/// The kernel rejects a filter.
fn filter(programs: &[&Program]) -> Result<bool, ConfineError> {
    for program in programs {
        match install(&program.filter) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(false),
            Err(error) => return Err(ConfineError::Filter(error)),
        }
    }
    Ok(true)
}

fn layer(
    dropped: RemainingCapabilities,
    is_filtered: bool,
    program: &Program,
    files: LandlockEffect,
) -> LayerReport {
    LayerReport {
        capabilities: dropped.remaining,
        is_bounding_set_empty: dropped.is_bounding_set_empty,
        is_filtered,
        listed_calls: program.calls,
        landlock: files,
    }
}
