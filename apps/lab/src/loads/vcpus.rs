//! The CPUs of a light guest.

/// The CPUs that the processes of a light guest may use: as many as it has virtual ones, and each
/// guest's begin where those of the guest before it end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vcpus {
    list: String,
}

impl Vcpus {
    /// Of the guest of that number, on a machine with so many CPUs. More than those it cannot have.
    pub(crate) fn new(guest: usize, count: usize, cpus: usize) -> Self {
        let cpus = cpus.max(1);
        let count = count.clamp(1, cpus);
        let mut own: Vec<usize> = (0..count).map(|at| (guest * count + at) % cpus).collect();
        own.sort_unstable();
        let list: Vec<String> = own.iter().map(ToString::to_string).collect();
        Self { list: list.join(",") }
    }

    /// A command that runs on them: `taskset` sets the affinity, which children inherit.
    pub(crate) fn bound<'a>(&'a self, words: &[&'a str]) -> Vec<&'a str> {
        [&["taskset", "--cpu-list", &self.list][..], words].concat()
    }
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
