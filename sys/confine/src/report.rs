//! What is in effect, for people and programs to see.

/// What Landlock does for a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRule {
    /// All that was asked for, by a kernel with this version of the interface.
    Full {
        /// Version of the kernel's interface.
        abi: u32,
    },
    /// What a kernel with this version of the interface can do.
    Partial {
        /// Version of the kernel's interface.
        abi: u32,
    },
    /// Nothing; the kernel has no Landlock, or it was not switched on at boot.
    Off,
}

/// What one layer came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerReport {
    /// Names of capabilities that are left.
    pub capabilities: Vec<&'static str>,
    /// Whether the bounding set is empty.
    pub bounding_is_empty: bool,
    /// Whether system calls are filtered.
    pub is_filtered: bool,
    /// System calls on the layer's list: those allowed, for the process those refused.
    pub listed_calls: usize,
    /// What Landlock does.
    pub files: FileRule,
}

impl LayerReport {
    /// What the kernel lacks for this layer, with what follows from that.
    pub fn lacking(&self) -> Vec<&'static str> {
        let mut lacking = Vec::new();
        if !self.is_filtered {
            lacking.push("seccomp filters: system calls are not limited");
        }
        match self.files {
            FileRule::Full { .. } => {}
            FileRule::Partial { .. } => {
                lacking.push("a newer Landlock: some ways to files, ports and signals are barred by the filter of system calls alone");
            }
            FileRule::Off => lacking.push(
                "Landlock: files are barred by the filter of system calls alone; boot with `landlock` in `lsm=`",
            ),
        }
        if !self.bounding_is_empty {
            lacking.push(
                "CAP_SETPCAP at start: the capability bounding set is as it was; no program can be run",
            );
        }
        lacking
    }
}

/// What is in effect in this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Whether nothing was asked for.
    pub is_off: bool,
    /// The whole process, once it is confined.
    pub process: Option<LayerReport>,
    /// Processors, once there is one.
    pub processors: Option<LayerReport>,
    /// Threads that read front-ends' messages, once there is one.
    pub front_ends: Option<LayerReport>,
    /// Threads that serve NBD clients, once there is one.
    pub nbd_servers: Option<LayerReport>,
    /// Calls refused since the start.
    pub refused_calls: u64,
}

impl Report {
    /// The layers that there are, by name.
    pub fn layers(&self) -> impl Iterator<Item = (&'static str, &LayerReport)> {
        let layers = [
            ("process", &self.process),
            ("processors", &self.processors),
            ("front-ends", &self.front_ends),
            ("nbd-servers", &self.nbd_servers),
        ];
        layers.into_iter().filter_map(|(name, layer)| Some((name, layer.as_ref()?)))
    }

    /// What the kernel lacks, each once.
    pub fn lacking(&self) -> Vec<&'static str> {
        let mut lacking: Vec<_> = self.layers().flat_map(|(_, layer)| layer.lacking()).collect();
        lacking.sort_unstable();
        lacking.dedup();
        lacking
    }
}
