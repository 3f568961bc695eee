//! Report of the confinement layers in effect.

/// Effect of Landlock in a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LandlockEffect {
    /// All requested restrictions are in effect; the kernel has this version of the interface.
    Full {
        /// Version of the kernel's Landlock interface.
        abi: u32,
    },
    /// Only the restrictions that the kernel's version of the interface supports are in effect.
    Partial {
        /// Version of the kernel's Landlock interface.
        abi: u32,
    },
    /// No effect; the kernel has no Landlock, or it was not enabled at boot.
    Off,
}

/// Restrictions of one layer that are in effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerReport {
    /// Names of the remaining capabilities (`CAP_...`).
    pub capabilities: Vec<&'static str>,
    /// True if the capability bounding set is empty.
    pub is_bounding_set_empty: bool,
    /// True if system calls are filtered.
    pub is_filtered: bool,
    /// Number of system calls on the layer's list: permitted ones, for the process rejected ones.
    pub listed_calls: usize,
    /// Effect of Landlock on files, ports and signals.
    pub landlock: LandlockEffect,
}

impl LayerReport {
    /// Returns descriptions of the kernel features that this layer lacks, each with its
    /// consequence.
    pub fn missing_features(&self) -> Vec<&'static str> {
        let mut missing = Vec::new();
        if !self.is_filtered {
            missing.push("seccomp filters: system calls are not limited");
        }
        match self.landlock {
            LandlockEffect::Full { .. } => {}
            LandlockEffect::Partial { .. } => {
                missing.push(
                    "a newer Landlock: some accesses to files, ports and signals are denied by \
                     the system call filter only",
                );
            }
            LandlockEffect::Off => missing.push(
                "Landlock: file access is denied by the system call filter only; boot with \
                 `landlock` in `lsm=`",
            ),
        }
        if !self.is_bounding_set_empty {
            missing.push(
                "CAP_SETPCAP at start: the capability bounding set is unchanged; no program can \
                 be executed",
            );
        }
        missing
    }
}

/// Confinement in effect in this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfinementReport {
    /// True if confinement is disabled.
    pub is_off: bool,
    /// Layer of the whole process, once it is confined.
    pub process: Option<LayerReport>,
    /// Layer of workers, once there is one.
    pub workers: Option<LayerReport>,
    /// Layer of threads that read front-ends' messages, once there is one.
    pub front_ends: Option<LayerReport>,
    /// Layer of threads that serve NBD clients, once there is one.
    pub nbd_servers: Option<LayerReport>,
    /// Calls rejected since the start.
    pub rejected_calls: u64,
}

impl ConfinementReport {
    /// Returns the layers in effect with their names.
    pub fn layers(&self) -> impl Iterator<Item = (&'static str, &LayerReport)> {
        let layers = [
            ("process", &self.process),
            ("processors", &self.workers),
            ("front-ends", &self.front_ends),
            ("nbd-servers", &self.nbd_servers),
        ];
        layers.into_iter().filter_map(|(name, layer)| Some((name, layer.as_ref()?)))
    }

    /// Returns descriptions of the kernel features that the layers lack, without duplicates.
    pub fn missing_features(&self) -> Vec<&'static str> {
        let mut missing: Vec<_> =
            self.layers().flat_map(|(_, layer)| layer.missing_features()).collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }
}
