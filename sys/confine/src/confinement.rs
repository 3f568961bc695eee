//! The layers, put in place.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use seccompiler::BpfProgram;
use thiserror::Error;

use crate::filter::{Call, List, compile, install};
use crate::privileges::{self, Dropped};
use crate::refusals::{self, Refusal};
use crate::report::{FileRule, LayerReport, Report};
use crate::warm_up::warm_up;
use crate::{allowed_calls, files, refused_calls};

/// What a thread does, and therefore may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Moves frames between queues that it was handed.
    Processor,
    /// Reads messages of VM monitors on sockets that it was handed, and starts threads for blocking
    /// calls, which inherit its confinement.
    FrontEnd,
    /// Accepts NBD clients, and starts threads for blocking calls, which inherit its confinement.
    NbdServer,
}

impl Role {
    /// The number by which refusals name it.
    const fn label(self) -> u32 {
        match self {
            Self::Processor => 1,
            Self::FrontEnd => 2,
            Self::NbdServer => 3,
        }
    }
}

/// Why a layer could not be put in place. What a kernel merely lacks is no error.
#[derive(Debug, Error)]
pub enum ConfineError {
    /// A filter could not be made.
    #[error("the filter of system calls cannot be made: {0}")]
    Compile(#[from] seccompiler::Error),
    /// The handler of refused calls.
    #[error("the handler of SIGSYS cannot be installed: {0}")]
    Handler(#[source] io::Error),
    /// Capabilities or no_new_privs.
    #[error("capabilities cannot be dropped: {0}")]
    Privileges(#[from] Errno),
    /// Landlock.
    #[error("Landlock cannot be set up: {0}")]
    Files(#[from] landlock::RulesetError),
    /// The filter.
    #[error("the filter of system calls cannot be installed: {0}")]
    Filter(#[source] io::Error),
    /// The process has other threads, which a layer would not reach.
    #[error("the process has {threads} threads already; confine it while it has one")]
    NotAlone {
        /// How many.
        threads: usize,
    },
}

impl From<ConfineError> for io::Error {
    fn from(error: ConfineError) -> Self {
        Self::other(error)
    }
}

/// The confinement of one process. Clones are handles on the same.
#[derive(Clone)]
pub struct Confinement(Arc<Inner>);

struct Inner {
    /// `None` if nothing is to be confined.
    lists: Option<Lists>,
    report: Mutex<Report>,
}

/// A list and how long it is.
struct Program {
    filter: BpfProgram,
    calls: usize,
}

struct Lists {
    process: Program,
    missing: Program,
    processor: Program,
    front_end: Program,
    nbd_server: Program,
}

impl Program {
    fn new(list: List, calls: &[Call]) -> Result<Self, seccompiler::Error> {
        Ok(Self { filter: compile(list, calls)?, calls: calls.len() })
    }
}

impl Confinement {
    /// Makes the filters and installs the handler of refused calls; nothing is
    /// confined yet.
    ///
    /// # Errors
    /// An architecture that is not supported, or no descriptor left.
    pub fn new() -> Result<Self, ConfineError> {
        refusals::install().map_err(ConfineError::Handler)?;
        let lists = Lists {
            process: Program::new(List::Refused, &refused_calls::of_the_process())?,
            missing: Program::new(List::Missing, &refused_calls::missing())?,
            processor: Program::new(List::Allowed, &allowed_calls::of_processors())?,
            front_end: Program::new(List::Allowed, &allowed_calls::of_front_ends())?,
            nbd_server: Program::new(List::Allowed, &allowed_calls::of_nbd_servers())?,
        };
        Ok(Self(Arc::new(Inner { lists: Some(lists), report: Mutex::default() })))
    }

    /// Confines nothing, for a debugger's sake.
    pub fn off() -> Self {
        let report = Report { is_off: true, ..Report::default() };
        Self(Arc::new(Inner { lists: None, report: Mutex::new(report) }))
    }

    /// Confines the process, that is the calling thread and all it will start. To be
    /// called while there is no other thread. Of the files below `/sys` only these can be
    /// written to from then on.
    ///
    /// # Errors
    /// There are other threads, or the kernel refuses for another reason than
    /// lacking something. What was put in place stays.
    pub fn confine_process(&self, sysfs_files: &[PathBuf]) -> Result<(), ConfineError> {
        let Some(lists) = &self.0.lists else { return Ok(()) };
        let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
        if threads != 1 {
            return Err(ConfineError::NotAlone { threads });
        }
        let dropped = privileges::drop_most()?;
        privileges::forbid_new()?;
        let files = files::forbid_programs(sysfs_files)?;
        let is_filtered = filter(&[&lists.process, &lists.missing])?;
        let layer = layer(dropped, is_filtered, &lists.process, files);
        self.report_mut().process = Some(layer);
        Ok(())
    }

    /// Confines the calling thread.
    ///
    /// # Errors
    /// The kernel refuses for another reason than lacking something; the thread must
    /// not go on to its work.
    pub fn confine_thread(&self, role: Role) -> Result<(), ConfineError> {
        let Some(lists) = &self.0.lists else { return Ok(()) };
        let program = match role {
            Role::Processor => &lists.processor,
            Role::FrontEnd => &lists.front_end,
            Role::NbdServer => &lists.nbd_server,
        };
        warm_up();
        refusals::mark_thread(role.label());
        let dropped = privileges::drop_all()?;
        privileges::forbid_new()?;
        let files = files::forbid_all()?;
        // Behind the list no other filter can be installed.
        let is_filtered = match role {
            Role::NbdServer | Role::FrontEnd => filter(&[&lists.missing, program])?,
            Role::Processor => filter(&[program])?,
        };
        let layer = layer(dropped, is_filtered, program, files);
        let mut report = self.report_mut();
        match role {
            Role::Processor => report.processors = Some(layer),
            Role::FrontEnd => report.front_ends = Some(layer),
            Role::NbdServer => report.nbd_servers = Some(layer),
        }
        Ok(())
    }

    /// Marks the calling thread, which a confined thread of this role has started, and
    /// which therefore is confined as that one is: refusals name it.
    pub fn mark_child(&self, role: Role) {
        refusals::mark_thread(role.label());
    }

    /// What is in effect now.
    pub fn report(&self) -> Report {
        Report { refused_calls: refusals::count(), ..self.report_mut().clone() }
    }

    /// What was refused, if anything was since the start.
    pub fn refusals(&self) -> Option<Refusal> {
        refusals::last()
    }

    fn report_mut(&self) -> MutexGuard<'_, Report> {
        self.0.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the kernel has filters; then they are in place.
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

fn layer(dropped: Dropped, is_filtered: bool, program: &Program, files: FileRule) -> LayerReport {
    LayerReport {
        capabilities: dropped.left,
        bounding_is_empty: dropped.bounding_is_empty,
        is_filtered,
        listed_calls: program.calls,
        files,
    }
}
