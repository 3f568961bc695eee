//! Core and NUMA node of CPUs.
//!
//! Read from sysfs (`Documentation/admin-guide/cputopology.rst` of the kernel).

use std::path::Path;

use suimon_ports::CpuTopology;

const CPUS: &str = "/sys/devices/system/cpu";

/// Returns core and NUMA node of each given logical CPU, in the same order. Where sysfs has no
/// information, the CPU is a core of its own, in node 0.
pub fn cpu_topology(cpus: &[u16]) -> Vec<CpuTopology> {
    cpus.iter().map(|cpu| read_topology(Path::new(CPUS), *cpu)).collect()
}

fn read_topology(root: &Path, cpu: u16) -> CpuTopology {
    let folder = root.join(format!("cpu{cpu}"));
    // The second file has the older name.
    let lists = ["topology/core_cpus_list", "topology/thread_siblings_list"];
    let siblings = lists.iter().find_map(|list| std::fs::read_to_string(folder.join(list)).ok());
    // Core ids are unique only within a package or die, so a core is identified by its first
    // thread.
    let first = siblings.and_then(|list| first_number(&list));
    CpuTopology {
        cpu,
        core: u32::from(first.unwrap_or(cpu)),
        numa_node: numa_node(&folder).unwrap_or(0),
    }
}

/// Returns the first number of a CPU list like `0,4` or `0-1`; `None` if it does not begin with
/// one.
fn first_number(list: &str) -> Option<u16> {
    list.trim().split([',', '-']).next()?.parse().ok()
}

/// Returns the NUMA node of a CPU; `None` if there is no information. The CPU's sysfs folder
/// contains a link to its node, named like `node0`.
fn numa_node(folder: &Path) -> Option<u16> {
    let entries = std::fs::read_dir(folder).ok()?;
    let nodes = entries.filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.strip_prefix("node")?.parse().ok()
    });
    nodes.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folder that is removed on drop.
    struct Folder(std::path::PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn add(&self, cpu: u16, list: Option<(&str, &str)>, node: Option<&str>) {
            let folder = self.0.join(format!("cpu{cpu}"));
            std::fs::create_dir_all(folder.join("topology")).unwrap();
            if let Some((file, text)) = list {
                std::fs::write(folder.join("topology").join(file), text).unwrap();
            }
            if let Some(node) = node {
                std::fs::create_dir(folder.join(node)).unwrap();
            }
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn siblings_share_a_core_and_numa_nodes_are_read() {
        let folder = Folder::new("suimon-cpu-places");
        folder.add(0, Some(("core_cpus_list", "0,8\n")), Some("node0"));
        folder.add(8, Some(("core_cpus_list", "0,8\n")), Some("node0"));
        folder.add(3, Some(("thread_siblings_list", "2-3\n")), Some("node1"));
        folder.add(4, Some(("core_cpus_list", "")), Some("nodes"));
        let places = [0, 8, 3, 4, 9].map(|cpu| {
            let CpuTopology { cpu: _, core, numa_node } = read_topology(&folder.0, cpu);
            (core, numa_node)
        });
        assert_eq!(places, [(0, 0), (0, 0), (2, 1), (4, 0), (9, 0)]);
    }

    #[test]
    fn this_host_reports_a_core_of_each_cpu() {
        use suimon_ports::WorkerRuntime;
        let cpus = crate::WorkerThreads.allowed_cpus();
        let topology = cpu_topology(&cpus);
        assert!(topology.iter().map(|entry| entry.cpu).eq(cpus));
        assert!(topology.iter().all(|entry| entry.core <= u32::from(entry.cpu)), "{topology:?}");
    }
}
