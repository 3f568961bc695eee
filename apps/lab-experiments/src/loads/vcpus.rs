//! CPUs of the machine and of a namespace guest.

/// CPUs that the processes of a namespace guest may use: as many as its virtual CPUs. The CPUs of
/// consecutive guests are adjacent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vcpus {
    list: String,
}

impl Vcpus {
    /// Returns the CPUs of the guest with this number on a machine with `cpus` CPUs, which limits
    /// their number.
    pub(crate) fn new(guest: usize, count: usize, cpus: usize) -> Self {
        let cpus = cpus.max(1);
        let count = count.clamp(1, cpus);
        let mut own_vcpus: Vec<usize> =
            (0..count).map(|number| (guest * count + number) % cpus).collect();
        own_vcpus.sort_unstable();
        let list: Vec<String> = own_vcpus.iter().map(ToString::to_string).collect();
        Self { list: list.join(",") }
    }

    /// Returns a command that runs on these CPUs: `taskset` sets the affinity, which child
    /// processes inherit.
    pub(crate) fn pinned_command<'a>(&'a self, command: &[&'a str]) -> Vec<&'a str> {
        [&["taskset", "--cpu-list", &self.list][..], command].concat()
    }
}

/// Returns the number of logical CPUs that this process may use.
pub fn available_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::Vcpus;

    #[test]
    fn guests_are_spread_over_the_cpus() {
        let list = |guest, count, cpus| Vcpus::new(guest, count, cpus).list;
        assert_eq!([list(0, 1, 2), list(1, 1, 2), list(2, 1, 2)], ["0", "1", "0"]);
        assert_eq!([list(0, 2, 4), list(1, 2, 4), list(1, 3, 4)], ["0,1", "2,3", "0,1,3"]);
        assert_eq!(list(3, 8, 2), "0,1");
    }
}
