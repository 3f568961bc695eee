//! Summary of samples by module. The kernel is divided into modules by the names of its functions.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use suimon_lab_run::ProfiledModule;

/// Module of kernel functions that belong to none of the modules in [`KERNEL`].
pub(crate) const KERNEL_OTHER: &str = "kernel: other";

/// Modules of the kernel with prefixes of their functions' names, without leading underscores. The
/// first match applies.
const KERNEL: &[(&str, &[&str])] = &[
    ("TCP", &["tcp", "inet_csk", "bictcp", "cubictcp", "mptcp"]),
    ("checksums", &["csum", "do_csum"]),
    (
        "copying",
        &[
            "copy_",
            "rep_movs",
            "rep_stos",
            "memcpy",
            "memmove",
            "memset",
            "clear_page",
            "clear_user",
        ],
    ),
    ("TAP", &["tun_", "tap_"]),
    (
        "IP",
        &[
            "ip_",
            "ip6",
            "ipv4",
            "ipv6",
            "inet",
            "fib",
            "udp",
            "icmp",
            "nf_",
            "ipt_",
            "neigh",
            "arp",
            "raw_local",
        ],
    ),
    (
        "network devices",
        &[
            "dev_",
            "netif",
            "napi",
            "net_",
            "gro_",
            "qdisc",
            "sch_direct",
            "fq_",
            "pfifo",
            "veth",
            "process_backlog",
            "eth_",
            "br_",
            "packet_",
            "tpacket",
            "xdp",
            "xsk",
            "validate_xmit",
            "enqueue_to_backlog",
            "virtnet",
            "ixgbe",
            "igb",
            "e1000",
            "mlx5",
            "bpf_prog",
            "bond_",
        ],
    ),
    (
        "sockets",
        &[
            "skb",
            "kfree_skb",
            "alloc_skb",
            "build_skb",
            "sock",
            "sk_",
            "unix_",
            "consume_skb",
            "release_sock",
            "lock_sock",
            "simple_copy_to_iter",
            "import_iovec",
        ],
    ),
    ("KVM", &["kvm", "vmx", "svm_", "vcpu"]),
    ("io_uring", &["io_"]),
    (
        "block devices",
        &[
            "blk",
            "bio_",
            "submit_bio",
            "loop_",
            "virtblk",
            "nvme",
            "scsi",
            "sd_",
            "dd_",
            "elv_",
            "rq_qos",
            "wbt_",
            "mq_",
            "virtio",
            "vring",
            "virtqueue",
        ],
    ),
    (
        "files",
        &[
            "ext4",
            "xfs",
            "jbd2",
            "btrfs",
            "vfs",
            "iomap",
            "folio",
            "filemap",
            "shmem",
            "dio_",
            "generic_file",
            "generic_perform",
            "file_",
            "fget",
            "fput",
            "fdget",
            "read_",
            "write_",
            "ksys_",
            "iov_iter",
            "find_get",
            "path_",
            "lookup",
            "dput",
            "xas_",
            "balance_dirty",
            "pipe_",
            "fuse",
        ],
    ),
    (
        "memory",
        &[
            "handle_mm",
            "handle_pte",
            "alloc_pages",
            "alloc_frozen",
            "get_page",
            "page",
            "pte",
            "kmem",
            "kmalloc",
            "kfree",
            "kvfree",
            "slab",
            "do_anonymous",
            "do_wp",
            "do_user_addr",
            "exc_page_fault",
            "asm_exc_page",
            "unmap",
            "mmap",
            "lru",
            "memcg",
            "mem_cgroup",
            "charge",
            "zap",
            "vma",
            "mas_",
            "rmqueue",
            "free_",
            "mod_",
            "do_fault",
            "lock_vma",
            "flush_tlb",
            "native_flush",
        ],
    ),
    (
        "scheduling",
        &[
            "sched",
            "schedule",
            "try_to_wake",
            "wake",
            "ttwu",
            "pick_",
            "dequeue",
            "enqueue",
            "update_",
            "hrtimer",
            "timer",
            "tick",
            "ktime",
            "futex",
            "finish_task",
            "switch",
            "psi",
            "set_next",
            "put_prev",
            "load_balance",
            "select_task",
            "handle_softirqs",
            "do_softirq",
            "raise_softirq",
            "irq",
            "sysvec",
            "reweight",
            "place_entity",
            "avg_",
            "native_sched",
            "cpuacct",
            "resched",
            "yield",
            "smp_call",
        ],
    ),
    (
        "waiting",
        &[
            "ep_",
            "do_epoll",
            "poll",
            "do_sys_poll",
            "do_select",
            "core_sys_select",
            "eventfd",
            "signal",
        ],
    ),
    (
        "system calls",
        &["do_syscall", "entry_SYSCALL", "syscall", "x64_sys", "se_sys", "entry_", "sys_"],
    ),
    (
        "locks",
        &[
            "raw_spin",
            "raw_read",
            "raw_write",
            "native_queued",
            "queued_",
            "mutex",
            "rcu",
            "down_",
            "up_",
            "rwsem",
            "osq_",
            "pv_",
            "local_bh",
            "spin_",
        ],
    ),
];

/// Returns the modules in the lines of `perf report` requested by [`super`], most time first. Each
/// sample represents `sample_s` seconds.
///
/// # Errors
/// A line has an unexpected format.
pub(super) fn parse_perf_report(report: &str, sample_s: f64) -> Result<Vec<ProfiledModule>> {
    let mut samples: BTreeMap<String, u64> = BTreeMap::new();
    for line in report.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let mut fields = line.splitn(3, '|').map(str::trim);
        let count: Option<u64> = fields.next().and_then(|count| count.parse().ok());
        let (Some(count), Some(object), Some(symbol)) = (count, fields.next(), fields.next())
        else {
            return Err(anyhow::anyhow!("{line}")).context("output of perf report");
        };
        *samples.entry(module(object, symbol)).or_default() += count;
    }
    let mut modules: Vec<ProfiledModule> = samples
        .into_iter()
        .map(|(name, count)| ProfiledModule { name, cpu_seconds: count as f64 * sample_s })
        .collect();
    modules.sort_by(|a, b| b.cpu_seconds.total_cmp(&a.cpu_seconds));
    Ok(modules)
}

/// Returns the module that a sampled function belongs to. `object` and `symbol` are the columns of
/// `perf report`.
fn module(object: &str, symbol: &str) -> String {
    // `[k] name`: the letter denotes the CPU mode.
    let function = symbol.split_once("] ").map_or(symbol, |(_, name)| name);
    let inner = object.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match inner {
        Some("kernel.kallsyms" | "kernel" | "kernel.vmlinux") => {
            let part = kernel_part(function);
            part.map_or_else(|| KERNEL_OTHER.to_owned(), |part| format!("kernel: {part}"))
        }
        Some("vdso") => "vdso".to_owned(),
        Some("unknown") => "unknown".to_owned(),
        Some(module) if !module.starts_with("guest") => format!("kernel: module {module}"),
        _ if object.starts_with("[JIT]") || object.starts_with("perf-") => {
            "compiled at run time".to_owned()
        }
        _ => object.rsplit('/').next().unwrap_or(object).to_owned(),
    }
}

fn kernel_part(function: &str) -> Option<&'static str> {
    let function = function.trim_start_matches('_');
    let fits = |prefixes: &[&str]| prefixes.iter().any(|prefix| function.starts_with(prefix));
    KERNEL.iter().find(|(_, prefixes)| fits(prefixes)).map(|(part, _)| *part)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of perf 6.1.
    const PERF_OUTPUT: &str = "\
 12         |suimond                            |[.] suimon_switch::tables::look_up
 3          |suimond                            |[.] core::ptr::drop_in_place<A|B>
 5          |[kernel.kallsyms]                  |[k] __tcp_transmit_skb
 4          |[kernel.kallsyms]                  |[k] _copy_to_iter
 1          |[kernel.kallsyms]                  |[k] something_else
 2          |[tun]                              |[k] tun_get_user
 2          |[JIT] tid 17458                    |[.] 0x00007f0000000000
 1          |/usr/lib/x86_64-linux-gnu/libc.so.6|[.] __memmove_avx_unaligned_erms

";

    #[test]
    fn samples_are_added_up_by_module() {
        let modules = parse_perf_report(PERF_OUTPUT, 0.5).unwrap();
        let seconds_by_module: Vec<(&str, f64)> =
            modules.iter().map(|module| (module.name.as_str(), module.cpu_seconds)).collect();
        assert_eq!(
            seconds_by_module,
            [
                ("suimond", 7.5),
                ("kernel: TCP", 2.5),
                ("kernel: copying", 2.0),
                ("compiled at run time", 1.0),
                ("kernel: module tun", 1.0),
                ("kernel: other", 0.5),
                ("libc.so.6", 0.5),
            ]
        );
        let error = parse_perf_report("perf: out of luck\n", 1.0).unwrap_err();
        assert!(format!("{error:#}").contains("out of luck"), "{error:#}");
        assert_eq!(parse_perf_report("# nothing\n", 1.0).unwrap(), []);
    }

    #[test]
    fn the_kernels_functions_have_parts() {
        let part = |symbol| module("[kernel.kallsyms]", symbol);
        for (symbol, name) in [
            ("[k] tcp_ack", "kernel: TCP"),
            ("[k] __ip_queue_xmit", "kernel: IP"),
            ("[k] __netif_receive_skb_core.constprop.0", "kernel: network devices"),
            ("[k] skb_release_data", "kernel: sockets"),
            ("[k] csum_partial", "kernel: checksums"),
            ("[k] ext4_dio_write_iter", "kernel: files"),
            ("[k] _raw_spin_lock", "kernel: locks"),
            ("[k] entry_SYSCALL_64", "kernel: system calls"),
        ] {
            assert_eq!(part(symbol), name, "{symbol}");
        }
    }
}
