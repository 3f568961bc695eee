// Made from contract/openapi.json by `npm run types`.

export interface paths {
    "/1.0": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the status of the host: version, number of objects, drain state and confinement. */
        get: operations["show_host"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/apply": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replaces the whole desired state.
         * @description Objects that the request does not name are deleted, and keys that it does not set get their
         *     defaults. If a step fails, the previous state is restored.
         */
        post: operations["apply_host"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/arrivals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Prepares the migration of a VM to this host. Used between nodes. */
        post: operations["prepare_arrival"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/arrivals/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the state of an incoming migration. Used between nodes.
         * @description An unknown migration counts as abandoned.
         */
        get: operations["show_arrival"];
        put?: never;
        post?: never;
        /** Abandons an incoming migration unless this host already owns the VM. Used between nodes. */
        delete: operations["abandon_arrival"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/arrivals/{id}/activate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Transfers ownership of the VM to this host. Used between nodes.
         * @description An abandoned migration remains abandoned, which the returned state shows.
         */
        post: operations["activate_arrival"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/arrivals/{id}/disks/{disk}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Receives the contents of a disk of an incoming VM. Used between nodes.
         * @description With `Upgrade: suimon-nbd` the connection then carries NBD; this host is the server.
         */
        get: operations["connect_arrival_disk"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/arrivals/{id}/memory": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Receives memory and device state of an incoming VM. Used between nodes.
         * @description With `Upgrade: suimon-memory` the connection then carries the migration stream of QEMU.
         */
        get: operations["connect_arrival_memory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/cluster": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns nodes of the cluster, the leader of each shared store, and the IOPS of this host. */
        get: operations["show_cluster"];
        /**
         * Joins a cluster and creates it if it does not exist.
         * @description Fails if etcd does not respond; with `force`, the host joins when etcd responds.
         */
        put: operations["replace_cluster"];
        /** Creates a cluster with this host as its first node. Fails if the cluster exists. */
        post: operations["init_cluster"];
        /**
         * Releases the reservations of this host and leaves the cluster.
         * @description Fails while disks are on shared stores or etcd does not respond, except with `force`.
         */
        delete: operations["leave_cluster"];
        options?: never;
        head?: never;
        /**
         * Changes the connection to etcd with a JSON merge patch (RFC 7386).
         * @description `name` and `node` cannot change.
         */
        patch: operations["change_cluster"];
        trace?: never;
    };
    "/1.0/cluster/flows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists guaranteed, demanded and delivered IOPS of disks on shared stores of all nodes.
         * @description Per node, the 8 disks with the most IOPS beyond their guarantee and the 8 disks furthest below
         *     it are listed, the latter with the disks that displace them.
         */
        get: operations["list_cluster_flows"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/cluster/members/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Removes a permanently failed node from the cluster and releases its reservations.
         * @description Fails while the node is alive.
         */
        delete: operations["remove_cluster_node"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the stored desired state, as JSON or as a host file (TOML). */
        get: operations["export_config"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/console/logins": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Creates a one-time login URL for the web console, valid for 1 min. */
        post: operations["create_console_login"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/disks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists all disks with their state. */
        get: operations["list_disks"];
        put?: never;
        /** Adds a disk. */
        post: operations["add_disk"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/disks/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns keys and state of a disk. */
        get: operations["show_disk"];
        /** Replaces a disk: keys that the request does not set get their defaults. */
        put: operations["replace_disk"];
        post?: never;
        /** Deletes a disk. Fails if another resource refers to it. The image file stays, except with `with_file`. */
        delete: operations["delete_disk"];
        options?: never;
        head?: never;
        /** Changes keys of a disk with a JSON merge patch (RFC 7386). Keys that the request does not name are unchanged. */
        patch: operations["change_disk"];
        trace?: never;
    };
    "/1.0/disks/{name}/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Checks the metadata of the image file of a disk and reads all of its data.
         * @description The disk must not be in use, and is out of service until the operation ends. The report of the
         *     operation contains the findings.
         */
        post: operations["check_disk"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/disks/{name}/compact": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Writes the image file of a disk anew without unused blocks.
         * @description The disk must not be in use, and is out of service until the operation ends. The store needs
         *     free space for the new file.
         */
        post: operations["compact_disk"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/disks/{name}/convert": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Copies a disk to another file of its store, in another format or kind.
         * @description The disk must not be in use, and is out of service until the operation ends. The disk and its
         *     file are unchanged.
         */
        post: operations["convert_disk"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/disks/{name}/merge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Merges the file of a differencing disk into its parent, which then is the file of the disk.
         * @description The disk must not be in use, and is out of service until the operation ends. The keys `file`,
         *     `kind` and `parent` of the disk change.
         */
        post: operations["merge_disk"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/disks/{name}/reopen": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Closes the image of a disk and opens it again.
         * @description After a failed flush (disk state `faulted`), the metadata of the image is checked, and writes
         *     and flushes are executed again. Clients of the disk see a pause.
         */
        post: operations["reopen_disk"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/disks/{name}/snapshot": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Creates a snapshot: later writes go to a new differencing file over the current one.
         * @description Requests of clients are queued for a moment. The keys `file`, `kind` and `parent` of the disk
         *     change.
         */
        post: operations["snapshot_disk"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists events of the log, oldest first. */
        get: operations["list_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/events/follow": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Streams events as they occur, one JSON object per line.
         * @description Empty lines keep the connection alive. A client that reads too slowly for the log of 10 000
         *     events finds the number of missed events in the field `lost_before` of the next event.
         */
        get: operations["follow_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/lab": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists experiments that can be run, the state of the lab worker, and queued requests. */
        get: operations["show_lab"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/lab/compare": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Compares two runs with the Mann-Whitney test, for every measure contained in both. */
        get: operations["compare_lab_runs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/lab/requests/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Withdraws a queued request, or stops its run and keeps the values measured so far.
         * @description A request that has ended stays unchanged.
         */
        delete: operations["withdraw_lab_request"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/lab/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the last 500 runs with progress and verdict, latest first. */
        get: operations["list_lab_runs"];
        put?: never;
        /**
         * Requests a run of an experiment.
         * @description The process `suimon lab work` executes requests in order.
         */
        post: operations["request_lab_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/lab/runs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a run with the figures of its plan: published, measured and simulated. */
        get: operations["show_lab_run"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/lab/runs/{id}/report": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the report of a run, one self-contained HTML page. */
        get: operations["show_lab_report"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/nics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists all NICs with their state. */
        get: operations["list_nics"];
        put?: never;
        /** Adds a NIC. */
        post: operations["add_nic"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/nics/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns keys and state of a NIC. */
        get: operations["show_nic"];
        /** Replaces a NIC: keys that the request does not set get their defaults. */
        put: operations["replace_nic"];
        post?: never;
        /** Deletes a NIC. Fails if another resource refers to it. */
        delete: operations["delete_nic"];
        options?: never;
        head?: never;
        /** Changes keys of a NIC with a JSON merge patch (RFC 7386). Keys that the request does not name are unchanged. */
        patch: operations["change_nic"];
        trace?: never;
    };
    "/1.0/nics/{name}/capture": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Captures the frames of the port as a pcapng stream. The capture ends at a limit of the request, when the client closes the connection, or when the operation in the header `Suimon-Operation` is cancelled. */
        get: operations["capture_nic"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/nodes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists all other nodes (`[[node]]`) with their state. */
        get: operations["list_nodes"];
        put?: never;
        /** Adds another node (`[[node]]`). */
        post: operations["add_node"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/nodes/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns keys and state of another node (`[[node]]`). */
        get: operations["show_node"];
        /** Replaces another node (`[[node]]`): keys that the request does not set get their defaults. */
        put: operations["replace_node"];
        post?: never;
        /** Deletes another node (`[[node]]`). Fails if another resource refers to it. */
        delete: operations["delete_node"];
        options?: never;
        head?: never;
        /** Changes keys of another node (`[[node]]`) with a JSON merge patch (RFC 7386). Keys that the request does not name are unchanged. */
        patch: operations["change_node"];
        trace?: never;
    };
    "/1.0/nodes/{name}/drain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Drains this host or another node: migrates its running VMs to other nodes, and admits none.
         * @description The operation ends when no VM runs on the node, and fails if a running VM cannot migrate. The
         *     node stays drained in both cases, also after a restart of its daemon.
         */
        post: operations["drain_node"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/nodes/{name}/undrain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ends the drain of a node, so that VMs can migrate to it.
         * @description VMs that have left stay on their new nodes.
         */
        post: operations["undrain_node"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the OpenAPI document. */
        get: operations["show_openapi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/operations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists running operations and the last 1000 that have ended, oldest first.
         * @description The plans, reports and errors of operations that have ended are kept up to 16 MiB. Beyond that
         *     size, the operations that ended first have `details_dropped` instead.
         */
        get: operations["list_operations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/operations/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns progress, result and plan of an operation. */
        get: operations["show_operation"];
        put?: never;
        post?: never;
        /**
         * Requests the cancellation of an operation.
         * @description The operation ends before its next step, and the previous state is restored. An operation that
         *     has ended stays unchanged. `GET` returns a cancelled operation until 1000 later operations have
         *     ended.
         */
        delete: operations["cancel_operation"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/operations/{id}/follow": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Streams an operation after each of its changes until it has ended, one JSON object per line.
         * @description Empty lines keep the connection alive.
         */
        get: operations["follow_operation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/operations/{id}/wait": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Waits until an operation has ended or the time limit is reached, and returns it. */
        get: operations["wait_operation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/pfs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists all configured SR-IOV adapters (`[[pf]]`) with their state. */
        get: operations["list_pfs"];
        put?: never;
        /** Adds an SR-IOV adapter (`[[pf]]`). */
        post: operations["add_pf"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/pfs/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns keys and state of an SR-IOV adapter (`[[pf]]`). */
        get: operations["show_pf"];
        /** Replaces an SR-IOV adapter (`[[pf]]`): keys that the request does not set get their defaults. */
        put: operations["replace_pf"];
        post?: never;
        /** Deletes an SR-IOV adapter (`[[pf]]`). Fails if another resource refers to it. The VFs of the adapter stay as they are. */
        delete: operations["delete_pf"];
        options?: never;
        head?: never;
        /** Changes keys of an SR-IOV adapter (`[[pf]]`) with a JSON merge patch (RFC 7386). Keys that the request does not name are unchanged. */
        patch: operations["change_pf"];
        trace?: never;
    };
    "/1.0/power": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the power plan, the state of each CPU setting, and power in milliwatts. */
        get: operations["show_power"];
        /**
         * Replaces the power plan.
         * @description Keys that the request does not set get the values of the plan.
         */
        put: operations["replace_power"];
        post?: never;
        /** Removes the power plan and restores the CPU settings that were in effect before it. */
        delete: operations["delete_power"];
        options?: never;
        head?: never;
        /** Changes keys of the power plan with a JSON merge patch (RFC 7386). */
        patch: operations["change_power"];
        trace?: never;
    };
    "/1.0/processors": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the workers (data-plane threads).
         * @deprecated
         * @description Use `/1.0/workers`. Version 0.3 removes this path.
         */
        get: operations["list_processors"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/qos-policies": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists all QoS policies with their state. */
        get: operations["list_qos_policies"];
        put?: never;
        /** Adds a QoS policy. */
        post: operations["add_qos_policy"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/qos-policies/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns keys and state of a QoS policy. */
        get: operations["show_qos_policy"];
        /** Replaces a QoS policy: keys that the request does not set get their defaults. */
        put: operations["replace_qos_policy"];
        post?: never;
        /** Deletes a QoS policy. Fails if another resource refers to it. */
        delete: operations["delete_qos_policy"];
        options?: never;
        head?: never;
        /** Changes keys of a QoS policy with a JSON merge patch (RFC 7386). Keys that the request does not name are unchanged. */
        patch: operations["change_qos_policy"];
        trace?: never;
    };
    "/1.0/qos/flows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists guaranteed, demanded and delivered IOPS of all open disks, with what limits them. */
        get: operations["list_qos_flows"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/qos/what-if": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Computes whether stores could guarantee proposed minimums. Nothing is changed. */
        post: operations["forecast_qos"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/queues": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the queues of all ports with the worker that services each. */
        get: operations["list_queues"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/queues/{port}/{side}/{index}/move": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Moves a queue to another worker.
         * @description No frame is lost or reordered. The assignment is not part of desired state.
         */
        post: operations["move_queue"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/sriov": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the SR-IOV adapters of the host with their virtual functions. */
        get: operations["list_sriov"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/sriov/{adapter}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns an SR-IOV adapter with its virtual functions. */
        get: operations["show_sriov"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/stores": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists all stores with their state. */
        get: operations["list_stores"];
        put?: never;
        /** Adds a store. */
        post: operations["add_store"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/stores/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns keys and state of a store. */
        get: operations["show_store"];
        /** Replaces a store: keys that the request does not set get their defaults. */
        put: operations["replace_store"];
        post?: never;
        /** Deletes a store. Fails if another resource refers to it. The files in its directory stay. */
        delete: operations["delete_store"];
        options?: never;
        head?: never;
        /** Changes keys of a store with a JSON merge patch (RFC 7386). Keys that the request does not name are unchanged. */
        patch: operations["change_store"];
        trace?: never;
    };
    "/1.0/stores/{name}/image-check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Checks the metadata of an image file in a store. Nothing is written. */
        post: operations["check_image"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/stores/{name}/image-info": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Returns format, size, ids and parent of an image file in a store. */
        post: operations["inspect_image"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/stores/{name}/image-relink": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Records the new path of the parent in a differencing image, after a backup beside the file. */
        post: operations["relink_image"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/stores/{name}/image-repair": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Repairs the metadata of an image file in a store, after a backup beside the file.
         * @description Metadata of which the file has a second copy is restored. Data blocks are not written. With
         *     `undo`, a backup is written back instead.
         */
        post: operations["repair_image"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/stores/{name}/measure": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Measures the capacity of a store in normalised IOPS.
         * @description A directory is measured with a temporary file, a block device with reads only. The result is in
         *     the report of the operation and in the status of the store. It limits minimums if
         *     `capacity_iops` of the store is `measure`.
         */
        post: operations["measure_store"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/switches": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists all switches with their state. */
        get: operations["list_switches"];
        put?: never;
        /** Adds a switch. */
        post: operations["add_switch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/switches/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns keys and state of a switch. */
        get: operations["show_switch"];
        /** Replaces a switch: keys that the request does not set get their defaults. */
        put: operations["replace_switch"];
        post?: never;
        /** Deletes a switch. Fails if another resource refers to it. */
        delete: operations["delete_switch"];
        options?: never;
        head?: never;
        /** Changes keys of a switch with a JSON merge patch (RFC 7386). Keys that the request does not name are unchanged. */
        patch: operations["change_switch"];
        trace?: never;
    };
    "/1.0/switches/{name}/addresses": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the forwarding table of a switch: configured addresses, then learned ones. */
        get: operations["list_addresses"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/teams": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists all teams with their state. */
        get: operations["list_teams"];
        put?: never;
        /** Adds a team. */
        post: operations["add_team"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/teams/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns keys and state of a team. */
        get: operations["show_team"];
        /** Replaces a team: keys that the request does not set get their defaults. */
        put: operations["replace_team"];
        post?: never;
        /** Deletes a team. Fails if another resource refers to it. */
        delete: operations["delete_team"];
        options?: never;
        head?: never;
        /** Changes keys of a team with a JSON merge patch (RFC 7386). Keys that the request does not name are unchanged. */
        patch: operations["change_team"];
        trace?: never;
    };
    "/1.0/top": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the counters of all ports, disks and workers at one moment.
         * @description A client computes rates from two responses and the difference of `time_monotonic_ns`.
         */
        get: operations["show_top"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/uplinks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists all uplinks with their state. */
        get: operations["list_uplinks"];
        put?: never;
        /** Adds an uplink. */
        post: operations["add_uplink"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/uplinks/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns keys and state of an uplink. */
        get: operations["show_uplink"];
        /** Replaces an uplink: keys that the request does not set get their defaults. */
        put: operations["replace_uplink"];
        post?: never;
        /** Deletes an uplink. Fails if another resource refers to it. */
        delete: operations["delete_uplink"];
        options?: never;
        head?: never;
        /** Changes keys of an uplink with a JSON merge patch (RFC 7386). Keys that the request does not name are unchanged. */
        patch: operations["change_uplink"];
        trace?: never;
    };
    "/1.0/uplinks/{name}/capture": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Captures the frames of the port as a pcapng stream. The capture ends at a limit of the request, when the client closes the connection, or when the operation in the header `Suimon-Operation` is cancelled. */
        get: operations["capture_uplink"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vmq": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the VMQ state of every uplink and team that a switch uses.
         * @description The settings are changed with the key `vmq` of the uplink or team.
         */
        get: operations["list_vmq"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vmq/{uplink}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the VMQ state of an uplink or team: the worker of each queue, and why it was assigned. */
        get: operations["show_vmq"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists all VMs with their state. */
        get: operations["list_vms"];
        put?: never;
        /** Adds a VM. */
        post: operations["add_vm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns keys and state of a VM. */
        get: operations["show_vm"];
        /** Replaces a VM: keys that the request does not set get their defaults. */
        put: operations["replace_vm"];
        post?: never;
        /** Deletes a VM. Fails if another resource refers to it. Fails while the VM runs. Its NICs and disks stay. */
        delete: operations["delete_vm"];
        options?: never;
        head?: never;
        /** Changes keys of a VM with a JSON merge patch (RFC 7386). Keys that the request does not name are unchanged. */
        patch: operations["change_vm"];
        trace?: never;
    };
    "/1.0/vms/{name}/console": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Connects to the serial console of a VM, one client at a time.
         * @description With `Upgrade: suimon-console` the connection then carries the bytes of both directions.
         */
        get: operations["connect_vm_console"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}/freeze": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Freezes the file systems of the guest through the guest agent, for a limited time. */
        post: operations["freeze_vm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}/guest": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns operating system, host name and IP addresses as reported by the guest agent.
         * @description The request can take some seconds.
         */
        get: operations["show_vm_guest"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}/kill": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Kills a VM, like a loss of power.
         * @description Data that the guest has not written to its disks is lost.
         */
        post: operations["kill_vm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}/libvirt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns libvirt domain XML for the NICs and disks of a VM.
         * @description The elements are `memoryBacking` and `devices`.
         */
        get: operations["show_vm_libvirt"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}/migrate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Migrates a running VM to another node.
         * @description The operation ends when the VM runs on the other node, or when the migration failed and the VM
         *     continues on this host. The VM, its NICs, disks and QoS policies leave the desired state of this
         *     host.
         */
        post: operations["migrate_vm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Pauses a running VM: stops its virtual CPUs. */
        post: operations["pause_vm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}/reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resets a VM like a reset button. The QEMU process stays. */
        post: operations["reset_vm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resumes a paused VM. */
        post: operations["resume_vm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}/start": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Starts a VM. The operation ends when its virtual CPUs run. */
        post: operations["start_vm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}/stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Requests the guest to shut down, and waits for it.
         * @description The operation fails if the guest has not shut down in time; with `force`, the VM is then killed.
         */
        post: operations["stop_vm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}/thaw": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Thaws the file systems of the guest through the guest agent. */
        post: operations["thaw_vm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/workers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the workers (data-plane threads). */
        get: operations["list_workers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the metrics in the text format of Prometheus (version 0.0.4). */
        get: operations["show_metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description Entry of `GET /1.0/switches/{name}/addresses`: entry of the forwarding table. */
        AddressStatus: {
            /** @description MAC address of the entry. */
            mac: string;
            /**
             * Format: int32
             * @description VLAN of the entry; absent for the untagged network.
             */
            vlan?: number | null;
            /** @description NIC, uplink or switch (for its host NIC) that frames to the address leave by. */
            port: string;
            /** @description True if the entry was configured, not learned. */
            fixed: boolean;
            /**
             * Format: int64
             * @description Seconds since the address was last seen; absent if configured.
             */
            age_s?: number | null;
        };
        /**
         * @description `[api]`: a TCP listener in addition to the Unix socket. Requires TLS and a token. Read when the
         *     daemon starts.
         */
        ApiConfig: {
            /** @description IP address and TCP port on which the daemon serves the API with TLS, such as `192.0.2.1:8443`. A change takes effect when the daemon starts. */
            listen: string;
            /** @description Absolute path of a PEM file with the certificate chain of the daemon. A change takes effect when the daemon starts. */
            tls_certificate: string;
            /** @description Absolute path of a PEM file with the private key of the certificate. The file must have no permissions for others (`chmod o=`). A change takes effect when the daemon starts. */
            tls_key: string;
            /** @description Absolute path of a file whose first line is the bearer token that every request over TCP must have, at least 16 characters. The file must have no permissions for others (`chmod o=`). A change takes effect when the daemon starts. */
            token_file: string;
            /** @description Absolute path of a file whose first line is a bearer token that permits `GET /metrics` only, for example for Prometheus: at least 16 characters, and different from the token of `token_file`; no such token if absent. The file must have no permissions for others (`chmod o=`). A change takes effect when the daemon starts. */
            metrics_token_file?: string | null;
        };
        /** @description Error with its location and the action to take. */
        ApiError: {
            /** @description Code of the kind of error. */
            code: components["schemas"]["ErrorCode"];
            /** @description Cause, and what to do next. */
            message: string;
            /** @description Resource concerned, such as `nic/web`. */
            resource?: string | null;
            /** @description Key concerned, such as `vlan` or `offload.tx_checksum`. */
            field?: string | null;
            /** @description File concerned; absent if the configuration came from no file. */
            file?: string | null;
            /** @description Line in the file, counted from 1. */
            line?: number | null;
        };
        /**
         * @description Desired state of the host: a host file as text or as a value.
         * @example {
         *       "config": {
         *         "switch": [
         *           {
         *             "kind": "private",
         *             "name": "lan"
         *           }
         *         ]
         *       }
         *     }
         */
        ApplyRequest: {
            /** @description The host file as text. */
            toml: string;
            /** @description Name of the file, which errors contain. */
            file?: string;
        } | {
            config: components["schemas"]["HostConfig"];
            /** @description Name of the file, which errors contain. */
            file?: string;
        };
        /** @description Response of `GET /1.0/arrivals/{id}`. */
        Arrival: {
            /** @description Id of the migration. */
            id: string;
            /** @description Current state of the incoming migration. */
            state: components["schemas"]["ArrivalState"];
        };
        /** @description Body of `POST /1.0/arrivals`: request of a source node to prepare a migration to this node. */
        ArrivalRequest: {
            /**
             * Format: int32
             * @description Version of the migration protocol of the source node.
             */
            protocol: number;
            /** @description Id of the migration, 32 hexadecimal digits, chosen at random by the source node. */
            id: string;
            /** @description Host name of the source node. */
            from: string;
            /** @description Current configuration of the VM. */
            vm: components["schemas"]["VmConfig"];
            /** @description Configuration at the VM's start, in effect while it runs. */
            as_started: components["schemas"]["VmConfig"];
            /** @description True if the VM's CPUs are paused and remain paused. */
            is_paused: boolean;
            /** @description UUID of the machine as the guest sees it, 32 hexadecimal digits. */
            uuid: string;
            /** @description NICs of the VM as configured. */
            nics: components["schemas"]["NicConfig"][];
            /**
             * @description Disks of the VM. Copied disks are given as they are to be created: without parent and with
             *     their size. Disks handed over are given as configured.
             */
            disks: components["schemas"]["DiskConfig"][];
            /** @description Disks handed over. They are opened when the VM becomes active. */
            handed_over?: components["schemas"]["DiskHandedOver"][];
            /**
             * @description Disks that are copied, with the space that they need. Disks whose space is unknown are left
             *     out.
             */
            copied?: components["schemas"]["DiskCopied"][];
            /** @description Switches of the NICs on the source node. Those of this node must have the same kinds. */
            switches?: components["schemas"]["SourceSwitch"][];
            /** @description Files that prove that both nodes access the same stores, one for each store. */
            stores?: components["schemas"]["StoreToken"][];
            /** @description QoS policies that the disks refer to. */
            qos_policies: components["schemas"]["QosPolicyConfig"][];
            /** @description True if KVM runs the VM, false if QEMU emulates the CPU. */
            is_kvm: boolean;
            /**
             * Format: int32
             * @description Current number of virtual CPUs.
             */
            cpus_now: number;
            /** @description Version of QEMU, such as `7.2.22`. */
            qemu_version: string;
            /** @description Machine type that QEMU emulates, such as `pc-q35-7.2`. */
            machine: string;
            /** @description PCI ports of the virtio devices. */
            ports: components["schemas"]["ArrivingPort"][];
            /**
             * @description CPU features of the source, as named by the kernel (`flags` in `/proc/cpuinfo`). Used with
             *     KVM only.
             */
            cpu_flags: string[];
        };
        /**
         * @description State of an incoming migration on the destination node.
         * @enum {string}
         */
        ArrivalState: "waiting" | "active" | "abandoned";
        /** @description PCI port of a device of a running VM. */
        ArrivingPort: {
            /** @description Device of the VM: `nic/NAME` or `disk/NAME`. */
            device: string;
            /**
             * Format: int32
             * @description Number of the PCI port on the machine, from 0.
             */
            port: number;
        };
        /**
         * @description Size in bytes. Deserialized from a number or from a text such as `"10 GiB"`; serialized as a
         *     number in JSON.
         */
        ByteSize: components["schemas"]["ByteSizeText"];
        ByteSizeText: number | string;
        /**
         * @description Source of a store's capacity.
         * @enum {string}
         */
        CapabilitySource: "declared" | "measured";
        /** @description Disk that exceeds its guaranteed share. */
        ClusterAggressor: {
            /** @description Name of the disk's node. */
            node: string;
            /** @description Name of the disk on its node. */
            disk: string;
            /**
             * Format: int64
             * @description Delivered rate in normalised operations per second.
             */
            delivered_iops: number;
            /**
             * Format: int64
             * @description Guaranteed rate in normalised operations per second.
             */
            guaranteed_iops: number;
            /**
             * Format: int64
             * @deprecated
             * @description Use `guaranteed_iops`. Version 0.3 removes this old name of it.
             */
            entitled_iops?: number;
        };
        /** @description Heartbeat that a node writes to a shared store. */
        ClusterBeat: {
            /** @description Name of the node's cluster. */
            cluster: components["schemas"]["Name"];
            /** @description Name of the node in its cluster. */
            node: components["schemas"]["Name"];
            /** @description True if the node belongs to another cluster. */
            is_other_cluster: boolean;
            /**
             * Format: int64
             * @description Delivered rate of the node's disks on the store, in normalised operations per second.
             */
            delivered_iops: number;
            /**
             * Format: int64
             * @description Reservation of the node, in normalised operations per second.
             */
            reserved_iops: number;
            /**
             * Format: int64
             * @description Age of the heartbeat in ms. Nodes write one every 5 s.
             */
            age_ms: number;
            /**
             * @deprecated
             * @description Use `is_other_cluster`. Version 0.3 removes this old name of it.
             */
            is_stranger?: boolean;
        };
        /** @description Limit of a host on a store, in normalised operations per second. */
        ClusterCap: {
            /**
             * Format: int64
             * @description Limit in force at the time of the response.
             */
            iops: number;
            /**
             * Format: int64
             * @description Reservation, valid without expiry and independent of the cluster's state.
             */
            reserved_iops: number;
            /**
             * Format: int64
             * @description Leased limit, valid until the lease expires; absent without a lease.
             */
            leased_iops?: number | null;
            /**
             * Format: int64
             * @description Remaining duration of the lease in ms, unless it is renewed.
             */
            lease_ms?: number | null;
            /**
             * Format: int64
             * @description Limit that replaces the reservation after a long loss of contact with the cluster; absent if
             *     the reservation remains in force.
             */
            fallback_iops?: number | null;
            /**
             * Format: int64
             * @description Time in ms until `fallback_iops` takes effect, unless contact is restored.
             */
            fallback_ms?: number | null;
        };
        /**
         * @description `[cluster]`: the cluster that this host is a node of, and the cluster's etcd. Stores with
         *     `shared = true` are limited to the share that the cluster grants this node. Without this table
         *     the host is not in a cluster.
         */
        ClusterConfig: {
            /** @description Name of the cluster. Hosts with the same name and the same etcd form one cluster. Another name needs `suimon cluster leave` first. It cannot be changed while the host is in the cluster. */
            name: components["schemas"]["Name"];
            /** @description Name of this host in the cluster, unique among its nodes. Another name needs `suimon cluster leave` first. It cannot be changed while the host is in the cluster. */
            node: components["schemas"]["Name"];
            /** @description URLs of all etcd members, such as `https://192.0.2.10:2379`. */
            endpoints: string[];
            /** @description Certificates for connections to `https` endpoints. */
            tls?: null | components["schemas"]["ClusterTls"];
            /** @description User name for etcd; no authentication by user if absent. */
            user?: string | null;
            /** @description Absolute path of a file whose first line is the password of the etcd user. The file must have no permissions for others (`chmod o=`). */
            password_file?: string | null;
        };
        /** @description Merge patch (RFC 7386) of `cluster`: keys that are absent stay as they are, null removes a key. */
        ClusterConfigPatch: {
            /** @description Name of the cluster. Hosts with the same name and the same etcd form one cluster. Another name needs `suimon cluster leave` first. It cannot be changed while the host is in the cluster. */
            name?: components["schemas"]["Name"];
            /** @description Name of this host in the cluster, unique among its nodes. Another name needs `suimon cluster leave` first. It cannot be changed while the host is in the cluster. */
            node?: components["schemas"]["Name"];
            /** @description URLs of all etcd members, such as `https://192.0.2.10:2379`. */
            endpoints?: string[];
            /** @description Certificates for connections to `https` endpoints. */
            tls?: null | components["schemas"]["ClusterTlsPatch"];
            /** @description User name for etcd; no authentication by user if absent. */
            user?: string | null;
            /** @description Absolute path of a file whose first line is the password of the etcd user. The file must have no permissions for others (`chmod o=`). */
            password_file?: string | null;
        };
        /**
         * @description Entry of `GET /1.0/cluster/flows`: a disk on a shared store, from the last report of its node.
         *     Rates are normalised operations per second. A report names the 8 disks with the highest rate
         *     above their guaranteed share, and the 8 disks with the largest shortfall below it.
         */
        ClusterDisk: {
            /** @description Name of the disk's node. */
            node: string;
            /** @description Name of the shared store. */
            store: string;
            /** @description Name of the disk on its node. */
            disk: string;
            /**
             * Format: int64
             * @description Guaranteed rate: the part of the demand that the disk's minimum covers.
             */
            guaranteed_iops: number;
            /**
             * Format: int64
             * @description Demanded rate: the rate of the client's requests.
             */
            demand_iops: number;
            /**
             * Format: int64
             * @description Delivered rate: the rate of completed requests.
             */
            delivered_iops: number;
            /**
             * @description Disks of any node that exceed their guaranteed share, highest excess first, while this disk
             *     is below its own; absent if it is not.
             */
            aggressors?: components["schemas"]["ClusterAggressor"][] | null;
            /**
             * Format: int64
             * @deprecated
             * @description Use `guaranteed_iops`. Version 0.3 removes this old name of it.
             */
            entitled_iops?: number;
            /**
             * Format: int64
             * @deprecated
             * @description Use `demand_iops`. Version 0.3 removes this old name of it.
             */
            demanded_iops?: number;
        };
        /** @description Node of a cluster. */
        ClusterMember: {
            /** @description Name of the node in the cluster. */
            name: string;
            /**
             * Format: int32
             * @description Number of the node; never reassigned to another node.
             */
            id: number;
            /** @description True if the node is this host. */
            is_this: boolean;
            /** @description True if the node keeps its lease in etcd alive. */
            is_alive: boolean;
        };
        /** @description Share of a store granted to a node. */
        ClusterShare: {
            /** @description Name of the node in the cluster. */
            node: string;
            /**
             * Format: int64
             * @description Limit in normalised operations per second while the node's lease is valid.
             */
            leased_iops: number;
            /**
             * Format: int64
             * @description Reservation in normalised operations per second, valid without expiry.
             */
            reserved_iops: number;
        };
        /** @description Response of `GET /1.0/cluster`. */
        ClusterStatus: {
            config?: null | components["schemas"]["ClusterConfig"];
            /**
             * @description `up` if the host is a node of the cluster and etcd responds, `down` if etcd does not
             *     respond, `failed` if the host cannot join the cluster.
             */
            condition: components["schemas"]["Condition"];
            /**
             * Format: int64
             * @description Age of the following values in ms; absent before the first report from etcd.
             */
            age_ms?: number | null;
            /** @description Nodes of the cluster, by name. */
            members: components["schemas"]["ClusterMember"][];
            /** @description Shared stores of this host, in the order of the configuration. */
            stores: components["schemas"]["ClusterStore"][];
        };
        /** @description Store shared by several nodes. */
        ClusterStore: {
            /** @description Name of the shared store. */
            store: components["schemas"]["Name"];
            /** @description Node that divides the store's capacity among the nodes (leader); absent if there is none. */
            leader?: string | null;
            /**
             * Format: int64
             * @description Term of the leader; higher than the term of every earlier leader.
             */
            term?: number | null;
            /**
             * Format: int64
             * @description Capacity of the store in normalised operations per second, as configured on this host.
             */
            capacity_iops?: number | null;
            /**
             * Format: int64
             * @description Limit of all nodes together, in normalised operations per second. Below the capacity under
             *     external load.
             */
            limit_iops?: number | null;
            /**
             * @description True if load from outside the cluster uses the store, or if the store delivers less than its
             *     capacity.
             */
            has_external_load: boolean;
            /** @description Limit of this host on the store. */
            cap: components["schemas"]["ClusterCap"];
            /** @description Share last granted to each node. */
            shares: components["schemas"]["ClusterShare"][];
            /** @description Heartbeats of other nodes, read from the store itself, independent of etcd. */
            heartbeats?: components["schemas"]["ClusterBeat"][];
            /**
             * @description Reason why this host does not participate in the store's cluster QoS; absent if it
             *     participates.
             */
            reason?: string | null;
            /**
             * Format: int64
             * @deprecated
             * @description Use `capacity_iops`. Version 0.3 removes this old name of it.
             */
            capability_iops?: number | null;
            /**
             * @deprecated
             * @description Use `has_external_load`. Version 0.3 removes this old name of it.
             */
            has_foreign_load?: boolean;
            /**
             * @deprecated
             * @description Use `heartbeats`. Version 0.3 removes this old name of it.
             */
            seen?: components["schemas"]["ClusterBeat"][];
            /**
             * @deprecated
             * @description Use `reason`. Version 0.3 removes this old name of it.
             */
            wrong?: string | null;
        };
        /** @description `[cluster.tls]`: certificates for connections to etcd. */
        ClusterTls: {
            /** @description Absolute path of a PEM file with the CA certificates that sign the certificates of the etcd members. */
            ca_certificate: string;
            /** @description Absolute path of a PEM file with the client certificate of this host; none if absent. */
            certificate?: string | null;
            /** @description Absolute path of a PEM file with the private key of the client certificate. The file must have no permissions for others (`chmod o=`). */
            key?: string | null;
            /**
             * @deprecated
             * @description Use `ca_certificate`. Version 0.3 removes this old name of it.
             */
            authority?: string;
        };
        /** @description Merge patch (RFC 7386) of `tls`: keys that are absent stay as they are, null removes a key. */
        ClusterTlsPatch: {
            /** @description Absolute path of a PEM file with the CA certificates that sign the certificates of the etcd members. */
            ca_certificate?: string;
            /** @description Absolute path of a PEM file with the client certificate of this host; none if absent. */
            certificate?: string | null;
            /** @description Absolute path of a PEM file with the private key of the client certificate. The file must have no permissions for others (`chmod o=`). */
            key?: string | null;
            /**
             * @deprecated
             * @description Use `ca_certificate`. Version 0.3 removes this old name of it.
             */
            authority?: string;
        };
        /** @description Health of a resource with its reason. */
        Condition: {
            /** @description Health of the resource. */
            health: components["schemas"]["Health"];
            /** @description Reason why the health is not `up`. */
            reason?: string | null;
        };
        /** @description Confinement of one kind of thread. */
        ConfinementLayer: {
            /**
             * @description Kind of thread: `process` (all threads), `workers` (workers), `front-ends` (threads that
             *     read messages of VMMs), or `nbd-servers` (threads that negotiate with NBD clients and carry
             *     their TLS).
             */
            threads: string;
            /** @description Capabilities that the threads keep. */
            capabilities: string[];
            /** @description Permitted system calls, such as `44 allowed`. */
            system_calls: string;
            /** @description State of Landlock, such as `full, version 7`. */
            landlock: string;
        };
        /**
         * @description Extent of the daemon's confinement.
         * @enum {string}
         */
        ConfinementMode: "full" | "partial" | "off";
        /**
         * @description Confinement of the daemon: restrictions on the system calls, capabilities and files of its
         *     threads.
         */
        ConfinementStatus: {
            /** @description Extent of the daemon's confinement. */
            mode: components["schemas"]["ConfinementMode"];
            /** @description Missing layers with their consequences; empty if none is missing. */
            missing: string[];
            /** @description Restrictions in effect for each kind of thread started so far. */
            layers: components["schemas"]["ConfinementLayer"][];
            /**
             * Format: int64
             * @description System calls refused since the daemon started. Any value above 0 indicates a defect or a
             *     compromised daemon.
             */
            refused_calls: number;
            /**
             * @deprecated
             * @description Use `missing`. Version 0.3 removes this old name of it.
             */
            lacking?: string[];
        };
        /** @description `[console]`: the web console, for browsers on this machine. Read when the daemon starts. */
        ConsoleConfig: {
            /** @description Loopback address and TCP port on which the daemon serves the console, such as `127.0.0.1:7446`. Other machines connect through a tunnel, such as `ssh -L 7446:127.0.0.1:7446 HOST`. A change takes effect when the daemon starts. */
            listen: string;
            /** @description Absolute path of a file whose first line is a token for logging in, at least 16 characters. The file must have no permissions for others (`chmod o=`). If absent, `suimon console login` is the only way to log in. A change takes effect when the daemon starts. */
            token_file?: string | null;
        };
        /** @description Single-use address that logs a browser in to the console. */
        ConsoleLogin: {
            /** @description URL to open in a browser on the host; valid once. */
            url: string;
            /**
             * Format: int64
             * @description Remaining validity of the URL in seconds.
             */
            valid_s: number;
        };
        /** @description Body of `POST /1.0/disks/{name}/convert`: copies the disk to another file of its store. */
        ConvertDiskRequest: {
            /** @description New file, relative to the store's path. It must not exist. */
            file: components["schemas"]["StoreFile"];
            /** @description Image format of the new file; not `pass-through`. */
            format: components["schemas"]["DiskFormat"];
            kind?: null | components["schemas"]["DiskKind"];
        };
        /** @description Feature of a network device. */
        DeviceFeatureStatus: {
            /** @description Name as in `ethtool -k`, such as `tx-tcp-segmentation`. */
            name: string;
            /**
             * @description State as in `ethtool -k`: `on`, `off`, `on [fixed]`, `off [fixed]`, `on [requested off]`,
             *     `off [requested on]`.
             */
            state: string;
        };
        /** @description Offload features of a network device. */
        DeviceFeaturesStatus: {
            /**
             * @description Reason why the features are unknown; absent if they are known, and for a TAP uplink, which
             *     has no hardware.
             */
            unknown?: string | null;
            /** @description Features relevant to the switch. */
            features: components["schemas"]["DeviceFeatureStatus"][];
        };
        /** @description `[[disk]]`: a virtual disk. */
        DiskConfig: {
            /** @description Name of the disk, unique among disks. It cannot be changed. */
            name: components["schemas"]["Name"];
            /** @description Store that contains the disk. A change replaces the resource. */
            store: components["schemas"]["Name"];
            /** @description Image file, relative to the path of the store; the name of the disk with `.raw`, `.vhd` or `.vhdx` if absent. A missing file is created when the disk is added, or by `suimon disk set --create-image`; otherwise, the disk has the state `failed`. The file is kept when the disk is deleted. A change replaces the resource. */
            file?: string | null;
            /** @description Image format of the file. `pass-through` uses the whole block device of the store. A change replaces the resource. */
            format: components["schemas"]["DiskFormat"];
            /** @description Allocation of the file: `fixed` (whole size), `dynamic` (written blocks; a sparse file with format `raw`) or `differencing` (written blocks, others are read from a parent). If absent, an existing VHD or VHDX keeps its kind; a new file is `differencing` with `parent`, `dynamic` with format `vhd` or `vhdx`, else `fixed`. A change replaces the resource. */
            kind?: null | components["schemas"]["DiskKind"];
            /** @description Size of the disk in bytes, or with a unit, such as `"10 GiB"`. Required for a new file; the size of the existing file if absent. It can be raised, not lowered. */
            size_bytes?: null | number | string;
            /** @description Kind `differencing`: parent file, relative to the path of the store, which no disk may write to. Required for a new file. If absent, the parent recorded in the existing image is used, or a file of the same name in the directory of the image. A change replaces the resource. */
            parent?: string | null;
            /**
             * @description True if the guest cannot write to the disk. A change replaces the resource.
             * @default false
             */
            read_only?: boolean;
            /** @description Serial number that the guest sees; the first 20 characters of the name of the disk if absent. A change replaces the resource. */
            serial?: string | null;
            /**
             * @description Logical sector size in bytes. A change replaces the resource.
             * @default 512
             * @enum {integer}
             */
            logical_sector?: 512 | 4096;
            /**
             * @description Physical sector size in bytes that is reported to the guest. A change replaces the resource.
             * @default 4096
             * @enum {integer}
             */
            physical_sector?: 512 | 4096;
            /** @description Block size of a new file in bytes, a power of two: 512 KiB to 2 MiB for a VHD (2 MiB if absent), 1 MiB to 256 MiB for a VHDX (32 MiB if absent). No effect on an existing file. */
            block_bytes?: null | number | string;
            /** @description QoS policy whose limits the disk has. Not permitted together with limits in `qos`. */
            qos_policy?: null | components["schemas"]["Name"];
            /** @description Limits of this disk. */
            qos?: components["schemas"]["DiskQos"];
            /**
             * @description Treatment of requests for which the store has no space. `wait`: they are queued until space is available, without time limit on a virtio disk and for up to `full_wait_s` from NBD clients; a VM with an IDE or SATA disk is paused meanwhile. `error`: they fail at once. An IDE or SATA disk of a running VM keeps the former value until the next start of the VM.
             * @default wait
             */
            on_full?: components["schemas"]["DiskOnFull"];
            /**
             * Format: int32
             * @description Time in seconds for which requests of NBD clients are queued while the store is full; 30 if absent. They then fail with `NBD_ENOSPC`.
             */
            full_wait_s?: number;
            /**
             * @description Controller that the VM sees the disk on: `virtio` (virtio-blk), or `ide` or `sata`, which QEMU emulates for guests without virtio drivers. IDE and SATA disks are attached when the VM starts, and need no keys of `vhost_user` or `nbd`. A change replaces the resource.
             * @default virtio
             */
            controller?: components["schemas"]["DiskController"];
            /** @description vhost-user socket by which a VM of another program uses the disk; none if absent. A change replaces the resource. */
            vhost_user?: null | components["schemas"]["DiskVhostUser"];
            /** @description NBD export of the disk under its name; none if absent. */
            nbd?: null | components["schemas"]["DiskNbd"];
        };
        /** @description Merge patch (RFC 7386) of `disk`: keys that are absent stay as they are, null removes a key. */
        DiskConfigPatch: {
            /** @description Name of the disk, unique among disks. It cannot be changed. */
            name?: components["schemas"]["Name"];
            /** @description Store that contains the disk. A change replaces the resource. */
            store?: components["schemas"]["Name"];
            /** @description Image file, relative to the path of the store; the name of the disk with `.raw`, `.vhd` or `.vhdx` if absent. A missing file is created when the disk is added, or by `suimon disk set --create-image`; otherwise, the disk has the state `failed`. The file is kept when the disk is deleted. A change replaces the resource. */
            file?: string | null;
            /** @description Image format of the file. `pass-through` uses the whole block device of the store. A change replaces the resource. */
            format?: components["schemas"]["DiskFormat"];
            /** @description Allocation of the file: `fixed` (whole size), `dynamic` (written blocks; a sparse file with format `raw`) or `differencing` (written blocks, others are read from a parent). If absent, an existing VHD or VHDX keeps its kind; a new file is `differencing` with `parent`, `dynamic` with format `vhd` or `vhdx`, else `fixed`. A change replaces the resource. */
            kind?: null | components["schemas"]["DiskKind"];
            /** @description Size of the disk in bytes, or with a unit, such as `"10 GiB"`. Required for a new file; the size of the existing file if absent. It can be raised, not lowered. */
            size_bytes?: null | number | string;
            /** @description Kind `differencing`: parent file, relative to the path of the store, which no disk may write to. Required for a new file. If absent, the parent recorded in the existing image is used, or a file of the same name in the directory of the image. A change replaces the resource. */
            parent?: string | null;
            /** @description True if the guest cannot write to the disk. A change replaces the resource. */
            read_only?: boolean | null;
            /** @description Serial number that the guest sees; the first 20 characters of the name of the disk if absent. A change replaces the resource. */
            serial?: string | null;
            /**
             * @description Logical sector size in bytes. A change replaces the resource.
             * @enum {integer|null}
             */
            logical_sector?: 512 | 4096 | null;
            /**
             * @description Physical sector size in bytes that is reported to the guest. A change replaces the resource.
             * @enum {integer|null}
             */
            physical_sector?: 512 | 4096 | null;
            /** @description Block size of a new file in bytes, a power of two: 512 KiB to 2 MiB for a VHD (2 MiB if absent), 1 MiB to 256 MiB for a VHDX (32 MiB if absent). No effect on an existing file. */
            block_bytes?: null | number | string;
            /** @description QoS policy whose limits the disk has. Not permitted together with limits in `qos`. */
            qos_policy?: null | components["schemas"]["Name"];
            /** @description Limits of this disk. */
            qos?: null | components["schemas"]["DiskQosPatch"];
            /** @description Treatment of requests for which the store has no space. `wait`: they are queued until space is available, without time limit on a virtio disk and for up to `full_wait_s` from NBD clients; a VM with an IDE or SATA disk is paused meanwhile. `error`: they fail at once. An IDE or SATA disk of a running VM keeps the former value until the next start of the VM. */
            on_full?: null | components["schemas"]["DiskOnFull"];
            /**
             * Format: int32
             * @description Time in seconds for which requests of NBD clients are queued while the store is full; 30 if absent. They then fail with `NBD_ENOSPC`.
             */
            full_wait_s?: number | null;
            /** @description Controller that the VM sees the disk on: `virtio` (virtio-blk), or `ide` or `sata`, which QEMU emulates for guests without virtio drivers. IDE and SATA disks are attached when the VM starts, and need no keys of `vhost_user` or `nbd`. A change replaces the resource. */
            controller?: null | components["schemas"]["DiskController"];
            /** @description vhost-user socket by which a VM of another program uses the disk; none if absent. A change replaces the resource. */
            vhost_user?: null | components["schemas"]["DiskVhostUserPatch"];
            /** @description NBD export of the disk under its name; none if absent. */
            nbd?: null | components["schemas"]["DiskNbdPatch"];
        };
        /**
         * @description Controller that the VM sees the disk on.
         * @enum {string}
         */
        DiskController: "virtio" | "ide" | "sata";
        /** @description Disk whose contents are copied to the destination. */
        DiskCopied: {
            /** @description Name of the disk. */
            name: components["schemas"]["Name"];
            /**
             * Format: int64
             * @description Space in bytes that the disk occupies on the source node; with several image files, the
             *     space of the largest one.
             */
            allocated_bytes: number;
        };
        /** @description Requests of a disk since it was opened. */
        DiskCounters: {
            /** @description Counters of read requests. */
            reads: components["schemas"]["DiskRequestCounters"];
            /** @description Counters of write requests. */
            writes: components["schemas"]["DiskRequestCounters"];
            /** @description Counters of flush requests. */
            flushes: components["schemas"]["DiskRequestCounters"];
            /** @description Counters of discard and write-zeroes requests. */
            discards: components["schemas"]["DiskRequestCounters"];
        };
        /**
         * @description Image format of a disk.
         * @enum {string}
         */
        DiskFormat: "raw" | "vhd" | "vhdx" | "pass-through";
        /** @description State of a disk whose store has no space for its requests. */
        DiskFullStatus: {
            /**
             * Format: int64
             * @description Requests queued until space is available.
             */
            queued_requests: number;
            /**
             * Format: int64
             * @description Time since the first request failed for lack of space, in ms.
             */
            lasts_ms: number;
        };
        /** @description Guest-visible geometry of a disk in a shared store. */
        DiskHandedOver: {
            /** @description Name of the disk. */
            name: components["schemas"]["Name"];
            /**
             * Format: int64
             * @description Size of the disk in bytes.
             */
            size_bytes: number;
            /**
             * Format: int32
             * @description Logical sector size in bytes.
             */
            logical_sector: number;
            /**
             * Format: int32
             * @description Physical sector size in bytes.
             */
            physical_sector: number;
        };
        /**
         * @description Allocation of a disk's content.
         * @enum {string}
         */
        DiskKind: "fixed" | "dynamic" | "differencing";
        /**
         * @description `[disk.nbd]`: exports the disk over NBD on a Unix socket, a TCP address or both. Disks that
         *     share a socket or address also share its access rules.
         */
        DiskNbd: {
            /** @description Absolute path of the Unix socket on which the daemon listens; no Unix socket if absent. Several disks may use the same socket. */
            socket?: string | null;
            /** @description Users of this host that may connect to `socket`, by name or number, in addition to `groups`. If both are absent, the user and group of the daemon may connect. */
            users?: string[] | null;
            /** @description Groups of this host whose members may connect to `socket`, by name or number, in addition to `users`. */
            groups?: string[] | null;
            /** @description IP address and TCP port on which the daemon listens, usually port 10809; no TCP listener if absent. Several disks may use the same address. An address that is not a loopback address requires TLS or `plaintext`. */
            listen?: string | null;
            /** @description Absolute path of a PEM file with the certificate chain of the daemon. It makes TLS mandatory at `listen`. */
            tls_certificate?: string | null;
            /** @description Absolute path of a PEM file with the private key of the certificate. The file must have no permissions for others (`chmod o=`). */
            tls_key?: string | null;
            /** @description Absolute path of a PEM file with CA certificates. A client without a certificate signed by one of them is rejected. */
            tls_client_ca?: string | null;
            /** @description DNS names of clients: the certificate of a client must contain at least one of them as subject alternative name; any name if absent. Requires `tls_client_ca`. */
            tls_clients?: string[] | null;
            /** @description IP addresses and networks from which clients may connect to `listen`, such as `192.0.2.0/24`; any if absent. */
            addresses?: string[] | null;
            /**
             * @description True if clients on other hosts may connect to `listen` without TLS. Other hosts on the network path can then read and change the data. Requires `addresses`.
             * @default false
             */
            plaintext?: boolean;
            /**
             * Format: int32
             * @description Maximum number of NBD connections of the disk, 1 to 16 384; 128 if absent.
             */
            connections_max?: number | null;
            /** @description Maximum buffer memory of the NBD connections of the disk in bytes, 1 MiB to 1 TiB; 128 MiB if absent. Of it, 512 KiB are reserved for each connection that `connections_max` permits, whether it exists or not; connections share the rest. At most one connection per 512 KiB is accepted. If memory is short, requests are delayed or processed in parts. */
            buffer_max_bytes?: null | number | string;
        };
        /** @description Connection of an NBD client. */
        DiskNbdClient: {
            /** @description Transport of the connection. */
            transport: components["schemas"]["NbdWay"];
            /** @description Peer: the process and its user, or the address and port. */
            peer: string;
            /**
             * Format: int64
             * @description Buffer memory of the connection in bytes, reserved memory included.
             */
            buffer_bytes?: number;
            /**
             * @deprecated
             * @description Use `transport`. Version 0.3 removes this old name of it.
             */
            way?: components["schemas"]["NbdWay"];
        };
        /** @description Merge patch (RFC 7386) of `nbd`: keys that are absent stay as they are, null removes a key. */
        DiskNbdPatch: {
            /** @description Absolute path of the Unix socket on which the daemon listens; no Unix socket if absent. Several disks may use the same socket. */
            socket?: string | null;
            /** @description Users of this host that may connect to `socket`, by name or number, in addition to `groups`. If both are absent, the user and group of the daemon may connect. */
            users?: string[] | null;
            /** @description Groups of this host whose members may connect to `socket`, by name or number, in addition to `users`. */
            groups?: string[] | null;
            /** @description IP address and TCP port on which the daemon listens, usually port 10809; no TCP listener if absent. Several disks may use the same address. An address that is not a loopback address requires TLS or `plaintext`. */
            listen?: string | null;
            /** @description Absolute path of a PEM file with the certificate chain of the daemon. It makes TLS mandatory at `listen`. */
            tls_certificate?: string | null;
            /** @description Absolute path of a PEM file with the private key of the certificate. The file must have no permissions for others (`chmod o=`). */
            tls_key?: string | null;
            /** @description Absolute path of a PEM file with CA certificates. A client without a certificate signed by one of them is rejected. */
            tls_client_ca?: string | null;
            /** @description DNS names of clients: the certificate of a client must contain at least one of them as subject alternative name; any name if absent. Requires `tls_client_ca`. */
            tls_clients?: string[] | null;
            /** @description IP addresses and networks from which clients may connect to `listen`, such as `192.0.2.0/24`; any if absent. */
            addresses?: string[] | null;
            /** @description True if clients on other hosts may connect to `listen` without TLS. Other hosts on the network path can then read and change the data. Requires `addresses`. */
            plaintext?: boolean | null;
            /**
             * Format: int32
             * @description Maximum number of NBD connections of the disk, 1 to 16 384; 128 if absent.
             */
            connections_max?: number | null;
            /** @description Maximum buffer memory of the NBD connections of the disk in bytes, 1 MiB to 1 TiB; 128 MiB if absent. Of it, 512 KiB are reserved for each connection that `connections_max` permits, whether it exists or not; connections share the rest. At most one connection per 512 KiB is accepted. If memory is short, requests are delayed or processed in parts. */
            buffer_max_bytes?: null | number | string;
        };
        /** @description State of a disk as an NBD export. */
        DiskNbdStatus: {
            /**
             * Format: int32
             * @description Number of connections of NBD clients.
             */
            clients: number;
            /**
             * Format: int32
             * @description Maximum number of connections in effect.
             */
            connections_max?: number;
            /**
             * Format: int64
             * @description Buffer memory of the connections in bytes, reserved memory included.
             */
            buffer_bytes?: number;
            /**
             * Format: int64
             * @description Maximum buffer memory in effect, in bytes.
             */
            buffer_max_bytes?: number;
            /** @description Connections in order of acceptance. */
            connections?: components["schemas"]["DiskNbdClient"][];
        };
        /**
         * @description Handling of requests for which the store has no space.
         * @enum {string}
         */
        DiskOnFull: "wait" | "error";
        /** @description Proposed settings of a disk. */
        DiskProposal: {
            /** @description Name of the disk. */
            name: components["schemas"]["Name"];
            store?: null | components["schemas"]["Name"];
            qos_policy?: null | components["schemas"]["Name"];
            /** @description Complete limits of the disk itself; none if neither these nor a policy is given. */
            qos?: components["schemas"]["DiskQos"];
        };
        /** @description `[disk.qos]`: limits of one disk, equivalent to a dedicated policy for it alone. */
        DiskQos: {
            /**
             * Format: int32
             * @description Guaranteed minimum in normalised IOPS (operations of `normalization_bytes` of the store, 8 KiB by default), in effect while the disk has requests; none if absent.
             */
            min_iops?: number | null;
            /**
             * Format: int32
             * @description Maximum in normalised IOPS (operations of `normalization_bytes` of the store, 8 KiB by default); no limit if absent. In each period of t seconds, the store gets at most `max_iops` × (t + c) operations and one more request, where the tolerance c is 0.02 s, or 0.08 s with `min_iops`. With `burst_iops`, the operations of the burst credit are added.
             */
            max_iops?: number | null;
            /** @description Maximum in bytes per second; no limit if absent. In each period of t seconds, the store gets at most `max_bytes_per_s` × (t + c) bytes and one more request, where the tolerance c is 0.02 s, or 0.08 s with `min_iops`. */
            max_bytes_per_s?: null | number | string;
            /**
             * Format: int32
             * @description Weight in the distribution of capacity beyond the minimums, relative to the weights of other disks.
             * @default 100
             */
            weight?: number;
            /**
             * Format: int32
             * @description Maximum in normalised IOPS (operations of `normalization_bytes` of the store, 8 KiB by default) while the disk has burst credit, higher than `max_iops`; no bursts if absent. Requires `max_iops` and `burst_s`.
             */
            burst_iops?: number | null;
            /**
             * Format: int32
             * @description Longest time in seconds for which a disk with full credit can use `burst_iops`: the credit is at most (`burst_iops` − `max_iops`) × `burst_s` operations. The disk collects credit while it uses less than `max_iops`. Requires `burst_iops`.
             */
            burst_s?: number | null;
        };
        /** @description Merge patch (RFC 7386) of `qos`: keys that are absent stay as they are, null removes a key. */
        DiskQosPatch: {
            /**
             * Format: int32
             * @description Guaranteed minimum in normalised IOPS (operations of `normalization_bytes` of the store, 8 KiB by default), in effect while the disk has requests; none if absent.
             */
            min_iops?: number | null;
            /**
             * Format: int32
             * @description Maximum in normalised IOPS (operations of `normalization_bytes` of the store, 8 KiB by default); no limit if absent. In each period of t seconds, the store gets at most `max_iops` × (t + c) operations and one more request, where the tolerance c is 0.02 s, or 0.08 s with `min_iops`. With `burst_iops`, the operations of the burst credit are added.
             */
            max_iops?: number | null;
            /** @description Maximum in bytes per second; no limit if absent. In each period of t seconds, the store gets at most `max_bytes_per_s` × (t + c) bytes and one more request, where the tolerance c is 0.02 s, or 0.08 s with `min_iops`. */
            max_bytes_per_s?: null | number | string;
            /**
             * Format: int32
             * @description Weight in the distribution of capacity beyond the minimums, relative to the weights of other disks.
             */
            weight?: number | null;
            /**
             * Format: int32
             * @description Maximum in normalised IOPS (operations of `normalization_bytes` of the store, 8 KiB by default) while the disk has burst credit, higher than `max_iops`; no bursts if absent. Requires `max_iops` and `burst_s`.
             */
            burst_iops?: number | null;
            /**
             * Format: int32
             * @description Longest time in seconds for which a disk with full credit can use `burst_iops`: the credit is at most (`burst_iops` − `max_iops`) × `burst_s` operations. The disk collects credit while it uses less than `max_iops`. Requires `burst_iops`.
             */
            burst_s?: number | null;
        };
        /**
         * @description Counters of one kind of request. Latencies last from the detection of a request to its
         *     completion, including time queued for limits.
         */
        DiskRequestCounters: {
            /**
             * Format: int64
             * @description Requests completed, with or without error.
             */
            requests: number;
            /**
             * Format: int64
             * @description Bytes transferred or affected by these requests.
             */
            bytes: number;
            /**
             * Format: int64
             * @description Requests completed with an error.
             */
            errors: number;
            /**
             * Format: int64
             * @description Median (50th percentile) of the latency in ns.
             */
            latency_ns_p50: number;
            /**
             * Format: int64
             * @description 99th percentile of the latency in ns.
             */
            latency_ns_p99: number;
            /**
             * Format: int64
             * @description Largest latency of a request in ns.
             */
            latency_ns_max: number;
        };
        /** @description Observed state of a disk. */
        DiskStatus: {
            /** @description Desired state of the disk. */
            config: components["schemas"]["DiskConfig"];
            /** @description Current state of the disk. */
            state: components["schemas"]["StorageState"];
            /** @description Cause of a state other than `ready`. */
            reason?: string | null;
            /** @description Absolute path of the disk's file or block device. */
            file: string;
            kind?: null | components["schemas"]["DiskKind"];
            parent?: null | components["schemas"]["StoreFile"];
            /**
             * Format: int64
             * @description Size of the disk in bytes, as the guest sees it; absent while the disk is not open.
             */
            size_bytes?: number | null;
            /**
             * Format: int64
             * @description Bytes allocated by the disk's file; absent for a block device and while the disk is not
             *     open.
             */
            allocated_bytes?: number | null;
            /**
             * Format: int32
             * @description Number of files of the disk: its own and those of its parents, at most 64. 0 for a block
             *     device; absent while the disk is not open.
             */
            layers?: number | null;
            /**
             * Format: int64
             * @description Bytes of written but unflushed image metadata, which a crash of the host would lose. 0 after
             *     2 s without requests; absent while the disk is not open.
             */
            uncommitted_bytes?: number | null;
            full?: null | components["schemas"]["DiskFullStatus"];
            /**
             * Format: int32
             * @description Worker that services the disk; absent while the disk is not open.
             */
            worker?: number | null;
            vhost_user?: null | components["schemas"]["DiskVhostUserStatus"];
            nbd?: null | components["schemas"]["DiskNbdStatus"];
            /** @description Requests since the disk was opened. */
            counters: components["schemas"]["DiskCounters"];
            qos?: null | components["schemas"]["QosFlowStatus"];
            /**
             * @description True if the disk's worker does not respond: counters, NBD connections, unflushed metadata
             *     and requests without space are the last known ones.
             */
            stale?: boolean;
            /**
             * Format: int32
             * @deprecated
             * @description Use `worker`. Version 0.3 removes this old name of it.
             */
            processor?: number | null;
        };
        /** @description `[disk.vhost_user]`: attaches the disk to a VM as a virtio disk. */
        DiskVhostUser: {
            /** @description Absolute path of the vhost-user socket for a VM that another program starts. A disk that only a VM of this host uses needs neither the key nor its table `[disk.vhost_user]`. A change replaces the resource. */
            socket: string;
            /**
             * @description Role of the daemon on the socket: `server` (the daemon listens) or `client` (QEMU listens, and the daemon connects). A change replaces the resource.
             * @default server
             */
            mode?: components["schemas"]["SocketMode"];
            /**
             * Format: int32
             * @description Largest number of request queues that the guest may use. A change replaces the resource.
             * @default 1
             */
            queues?: number;
        };
        /** @description Merge patch (RFC 7386) of `vhost_user`: keys that are absent stay as they are, null removes a key. */
        DiskVhostUserPatch: {
            /** @description Absolute path of the vhost-user socket for a VM that another program starts. A disk that only a VM of this host uses needs neither the key nor its table `[disk.vhost_user]`. A change replaces the resource. */
            socket?: string;
            /** @description Role of the daemon on the socket: `server` (the daemon listens) or `client` (QEMU listens, and the daemon connects). A change replaces the resource. */
            mode?: null | components["schemas"]["SocketMode"];
            /**
             * Format: int32
             * @description Largest number of request queues that the guest may use. A change replaces the resource.
             */
            queues?: number | null;
        };
        /** @description State of a disk as a virtio disk of a VM. */
        DiskVhostUserStatus: {
            /** @description True if a VM is connected. */
            connected: boolean;
            /**
             * Format: int32
             * @description Number of queues that the guest's driver uses.
             */
            queues: number;
            /** @description Features negotiated with the guest's driver, by their names in the virtio specification. */
            features: string[];
        };
        /** @description Plan for the VMs of a drained node: the response to a dry run. */
        DrainPlan: {
            /** @description Host name of the node. */
            node: string;
            /** @description VMs of the node and their destinations. */
            vms: components["schemas"]["DrainedVm"][];
        };
        /**
         * @description Body of `POST /1.0/nodes/{name}/drain`: the node admits no more migrating VMs, and its running
         *     VMs migrate to other nodes.
         */
        DrainRequest: {
            /** @description Permitted destinations, from the `[[node]]`s of the drained host; all of these if empty. */
            to?: components["schemas"]["Name"][];
            /**
             * Format: int32
             * @description Target downtime of each VM at the end of its migration, in ms, 1 to 60 000.
             */
            downtime_ms?: number;
            bandwidth?: null | components["schemas"]["ByteSize"];
            /** @description True if the files of a VM's disks are deleted on the drained node after the migration. */
            with_files?: boolean;
        };
        /** @description State of a drained host. */
        DrainStatus: {
            /**
             * Format: int64
             * @description Start of the drain, in milliseconds since 1970-01-01 UTC.
             */
            since_unix_ms: number;
            /** @description True if every VM that was running at the start has left and no VM runs now. */
            is_empty: boolean;
            /**
             * Format: int64
             * @description Operation that migrates the VMs; absent after it ended.
             */
            operation?: number | null;
        };
        /** @description Planned destination of one VM. */
        DrainedVm: {
            /** @description Name of the VM. */
            vm: components["schemas"]["Name"];
            to?: null | components["schemas"]["Name"];
            /** @description Reason why the VM stays; absent if it migrates. */
            reason?: string | null;
            /** @description True if the VM is running and stays, so that the node does not become empty. */
            blocks_drain?: boolean;
            /**
             * @deprecated
             * @description Use `blocks_drain`. Version 0.3 removes this old name of it.
             */
            is_in_the_way?: boolean;
        };
        /** @description Counter of drops for one reason. */
        DropCounter: {
            /** @description Stable name of the reason, such as `spoofed_source`. */
            reason: string;
            /**
             * Format: int64
             * @description Number of frames dropped.
             */
            frames: number;
        };
        /**
         * @description Preference of a CPU that selects its frequency autonomously (`energy_performance_preference` of
         *     Linux).
         * @enum {string}
         */
        EnergyPreference: "performance" | "balance_performance" | "balance_power" | "power";
        /** @description Body of every unsuccessful response. */
        ErrorBody: {
            /** @description Errors found, most important first; never empty. */
            errors: components["schemas"]["ApiError"][];
        };
        /**
         * @description Kind of an error. The names are part of the API.
         * @enum {string}
         */
        ErrorCode: "malformed" | "unknown_key" | "invalid_value" | "missing_key" | "key_not_applicable" | "duplicate_name" | "conflict" | "overlapping_vlans" | "unknown_reference" | "not_found" | "method_not_allowed" | "already_exists" | "in_use" | "overcommitted" | "device_missing" | "device_busy" | "unreachable" | "permission_denied" | "unsupported" | "host_error" | "unauthorized" | "cancelled" | "internal";
        /**
         * @description Event in the log. Numbers of kinds are part of the API and never change their meaning: 1xxx
         *     host, 2xxx switch, 3xxx NIC, 4xxx uplink and team, 5xxx worker and queue, 6xxx store, disk and
         *     Storage QoS, 7xxx VM, 8xxx power, 9xxx SR-IOV.
         */
        Event: {
            /**
             * Format: int64
             * @description Position in the log. Increases by one per event and continues across restarts of the daemon;
             *     after a crash, up to 10 000 numbers are skipped.
             */
            sequence: number;
            /**
             * Format: int64
             * @description Time of the event in milliseconds since 1970-01-01 UTC.
             */
            time_unix_ms: number;
            /**
             * Format: int32
             * @description Number of the event's kind.
             */
            id: number;
            /** @description Severity of the event's kind. */
            severity: components["schemas"]["Severity"];
            /** @description Object concerned, such as `nic/web`. */
            subject: string;
            /** @description Description of the occurrence in English. */
            text: string;
            /** @description Machine-readable values of the description. */
            fields?: {
                [key: string]: string;
            };
        };
        /** @description Change of one key of a resource. */
        FieldChange: {
            /** @description Key, such as `vlan` or `offload.tx_checksum`. */
            field: string;
            /** @description Previous value as JSON; absent if there was none. */
            from?: unknown;
            /** @description New value as JSON; absent if there is none. */
            to?: unknown;
        };
        /**
         * @description Body of `POST /1.0/vms/{name}/freeze`: the guest agent flushes and freezes the guest's file
         *     systems until `…/thaw` or until the time expires. The body may be absent.
         */
        FreezeVmRequest: {
            /**
             * Format: int64
             * @description Time in seconds after which the file systems are thawed automatically, 1 to 600.
             * @default 30
             */
            seconds?: number;
        };
        /**
         * @description Agreement of desired and observed state of a resource.
         * @enum {string}
         */
        Health: "up" | "down" | "failed";
        /** @description Desired state of one host: the content of the host file. */
        HostConfig: {
            /** @description Settings of the host itself. */
            host?: components["schemas"]["HostSection"];
            /** @description TCP listener of the API; none if absent. A change takes effect when the daemon starts. */
            api?: null | components["schemas"]["ApiConfig"];
            /** @description Web console; none if absent. A change takes effect when the daemon starts. */
            console?: null | components["schemas"]["ConsoleConfig"];
            /** @description Folder of results of experiments; the default folder if absent. A change takes effect when the daemon starts. */
            lab?: null | components["schemas"]["LabConfig"];
            /** @description Power plan of the host; CPU settings are not changed if absent. */
            power?: null | components["schemas"]["PowerConfig"];
            /** @description Membership of the host in a cluster; none if absent. */
            cluster?: null | components["schemas"]["ClusterConfig"];
            /** @description Virtual switches. */
            switch?: components["schemas"]["SwitchConfig"][];
            /** @description Uplinks: network devices that connect switches to the physical network. */
            uplink?: components["schemas"]["UplinkConfig"][];
            /** @description Teams: groups of uplinks that a switch uses as one. */
            team?: components["schemas"]["TeamConfig"][];
            /** @description Virtual NICs. */
            nic?: components["schemas"]["NicConfig"][];
            /** @description Stores: directories and block devices that contain disks. */
            store?: components["schemas"]["StoreConfig"][];
            /** @description QoS policies: limits for several disks. */
            qos_policy?: components["schemas"]["QosPolicyConfig"][];
            /** @description Virtual disks of VMs and NBD clients. */
            disk?: components["schemas"]["DiskConfig"][];
            /** @description VMs that the daemon can start. */
            vm?: components["schemas"]["VmConfig"][];
            /** @description SR-IOV adapters (physical functions) and their virtual functions. */
            pf?: components["schemas"]["PfConfig"][];
            /** @description Other hosts, as destinations of live migration. */
            node?: components["schemas"]["NodeConfig"][];
        };
        /** @description `[host]`: settings of the host itself. */
        HostSection: {
            /** @description Name of the host in output and events; the host name of the machine if absent. */
            name?: string | null;
            /** @description Logical CPUs of the workers (data-plane threads): one worker is pinned to each. If absent, `floating_workers` sets the number of workers. */
            worker_cpus?: number[] | null;
            /**
             * Format: int32
             * @description Number of workers that are not pinned to a CPU, used if `worker_cpus` is absent; 1 if absent.
             */
            floating_workers?: number | null;
            /** @description Absolute path of the folder that contains one folder per VM with its sockets and log; `/run/suimon/vms` if absent. A running VM keeps its folder until its next start. A change takes effect when a VM starts. */
            vm_folder?: string | null;
            /**
             * Format: int32
             * @description Maximum number of NBD connections of all disks, 1 to 16 384; 1024 if absent.
             */
            nbd_connections_max?: number | null;
            /** @description Maximum buffer memory of the NBD connections of all disks in bytes, 1 MiB to 1 TiB; 1 GiB if absent. Of it, 512 KiB are reserved for each connection that `nbd_connections_max` permits, whether it exists or not; connections share the rest. At most one connection per 512 KiB is accepted. If memory is short, requests are delayed or processed in parts. */
            nbd_buffer_max_bytes?: null | number | string;
            /**
             * Format: int32
             * @description Maximum number of NBD connections of one peer, 1 to 16 384; 512 if absent. A peer is a user of this host, an IPv4 address or an IPv6 network of 64 bits.
             */
            nbd_peer_connections_max?: number | null;
            /** @description Maximum buffer memory of the NBD connections of one peer in bytes, 1 MiB to 1 TiB; 512 MiB if absent. Of it, 512 KiB are reserved for each connection that `nbd_peer_connections_max` permits, whether it exists or not; connections share the rest. At most one connection per 512 KiB is accepted. If memory is short, requests are delayed or processed in parts. */
            nbd_peer_buffer_max_bytes?: null | number | string;
            /**
             * @deprecated
             * @description Use `worker_cpus`. Version 0.3 removes this old name of it.
             */
            processors?: number[] | null;
            /**
             * Format: int32
             * @deprecated
             * @description Use `floating_workers`. Version 0.3 removes this old name of it.
             */
            floating_processors?: number | null;
        };
        /** @description Response of `GET /1.0`: observed state of the host. */
        HostStatus: {
            /** @description Name of the host. */
            name: string;
            /** @description Version of the daemon. */
            version: string;
            /**
             * Format: int64
             * @description Seconds since the daemon started.
             */
            uptime_s: number;
            /**
             * Format: int64
             * @description Revision of the desired state. Increases with every change and continues across restarts of
             *     the daemon.
             */
            revision: number;
            /** @description Number of configured switches. */
            switches: number;
            /** @description Number of configured uplinks. */
            uplinks: number;
            /** @description Number of configured teams. */
            teams?: number;
            /** @description Number of configured NICs. */
            nics: number;
            /** @description Number of configured stores. */
            stores?: number;
            /** @description Number of configured QoS policies. */
            qos_policies?: number;
            /** @description Number of configured disks. */
            disks?: number;
            /** @description Number of configured VMs. */
            vms?: number;
            /** @description Number of configured SR-IOV adapters. */
            pfs?: number;
            /** @description Number of configured other nodes. */
            nodes?: number;
            drain?: null | components["schemas"]["DrainStatus"];
            /** @description State directory of the daemon. */
            state_store?: components["schemas"]["StateStoreStatus"];
            /** @description Confinement of the daemon's threads. */
            confinement?: components["schemas"]["ConfinementStatus"];
            /** @description Connections of NBD clients to all disks. */
            nbd?: components["schemas"]["NbdStatus"];
        };
        /** @description Range of a file that an operation changes. */
        ImageChange: {
            /**
             * Format: int64
             * @description Offset of the first changed byte.
             */
            offset: number;
            /**
             * Format: int64
             * @description Length of the range in bytes.
             */
            bytes: number;
        };
        /** @description Changes of metadata, as `suimon image repair` and `suimon image relink` report them. */
        ImageChanges: {
            /** @description Path of the file, or its name in the store. */
            file: string;
            /** @description True if nothing was written. */
            dry_run: boolean;
            /** @description Actions performed, or to be performed in a dry run. */
            actions: string[];
            /** @description Ranges of the file that change. */
            changes: components["schemas"]["ImageChange"][];
            /**
             * Format: int64
             * @description Length of the file before the change, in bytes.
             */
            file_bytes_before: number;
            /**
             * Format: int64
             * @description Length of the file after the change, in bytes.
             */
            file_bytes_after: number;
            /** @description File with the previous metadata; absent if nothing changed, and for a dry run. */
            backup?: string | null;
            /** @description Check of the image after the change. */
            check: components["schemas"]["ImageCheck"];
        };
        /** @description Result of checking an image file, as `suimon image check` reports it. */
        ImageCheck: {
            /** @description Path of the file, or its name in the store. */
            file: string;
            /** @description Image format of the file. */
            format: components["schemas"]["DiskFormat"];
            /** @description Overall result of the check. */
            verdict: components["schemas"]["ImageVerdict"];
            /**
             * Format: int64
             * @description Number of errors found.
             */
            errors: number;
            /**
             * Format: int64
             * @description Unreferenced bytes at the end of the file, which a repair releases.
             */
            leaked_bytes: number;
            /**
             * Format: int64
             * @description Unreferenced bytes between blocks. Writes reuse them; `suimon disk compact` releases them.
             */
            unused_bytes: number;
            /**
             * Format: int64
             * @description Blocks of the disk; 0 for formats without blocks.
             */
            blocks: number;
            /**
             * Format: int64
             * @description Blocks allocated in the file.
             */
            allocated_blocks: number;
            /** @description Findings, in the order of the file's structures; at most 1000. */
            findings: components["schemas"]["ImageFinding"][];
            /**
             * Format: int64
             * @description Number of findings omitted from the list.
             */
            findings_left_off: number;
        };
        /** @description Finding of a check. */
        ImageFinding: {
            /** @description Severity of the finding. */
            severity: components["schemas"]["ImageSeverity"];
            /** @description Message with field, offset and fault. */
            message: string;
        };
        /** @description Properties of an image file, as `suimon image info` reports them. */
        ImageInfo: {
            /** @description Path of the file, or its name in the store. */
            file: string;
            /** @description Image format of the file. */
            format: components["schemas"]["DiskFormat"];
            kind?: null | components["schemas"]["DiskKind"];
            /**
             * Format: int64
             * @description Size of the disk in bytes, as a guest sees it.
             */
            size_bytes: number;
            /**
             * Format: int64
             * @description Length of the file in bytes.
             */
            file_bytes: number;
            /**
             * Format: int64
             * @description Bytes allocated by the file.
             */
            allocated_bytes: number;
            /**
             * Format: int64
             * @description Block size in bytes; absent for formats and kinds without blocks.
             */
            block_bytes?: number | null;
            /**
             * Format: int32
             * @description Logical sector size in bytes.
             */
            logical_sector: number;
            /**
             * Format: int32
             * @description Physical sector size in bytes.
             */
            physical_sector: number;
            /** @description True if the image was not closed. The next writer replays its log. */
            dirty: boolean;
            /** @description Identity of the disk: Unique Id of a VHD, Virtual Disk Id of a VHDX; absent for a raw file. */
            disk_id?: string | null;
            /** @description VHDX: identity of the content, which children record as their parent's. */
            content_id?: string | null;
            parent?: null | components["schemas"]["ImageParent"];
        };
        /** @description The parent of a differencing image. */
        ImageParent: {
            /** @description Paths that the image records, in Windows syntax. */
            recorded: string[];
            /** @description File of the parent that was found; absent if there is none. */
            file?: string | null;
            /** @description Reason why no parent was found. */
            reason?: string | null;
        };
        /** @description Request for an operation on an image of a store. */
        ImageRequest: {
            /** @description File, relative to the store's path. */
            file: components["schemas"]["StoreFile"];
            format?: null | components["schemas"]["DiskFormat"];
            parent?: null | components["schemas"]["StoreFile"];
            undo?: null | components["schemas"]["StoreFile"];
            /** @description repair, relink: report the changes without writing. */
            dry_run?: boolean;
        };
        /**
         * @description Severity of a finding.
         * @enum {string}
         */
        ImageSeverity: "error" | "leak" | "note";
        /**
         * @description Result of a check, with the exit codes of `qemu-img check`.
         * @enum {string}
         */
        ImageVerdict: "sound" | "damaged" | "leaks" | "unsupported";
        /**
         * @description Path of a NIC's frames.
         * @enum {string}
         */
        IovPath: "synthetic" | "vf";
        /** @description State of a NIC's virtual function. */
        IovStatus: {
            /** @description Path that frames currently take. */
            path: components["schemas"]["IovPath"];
            /** @description PCI address of the adapter of the assigned virtual function, independent of the path in use. */
            adapter?: string | null;
            /**
             * Format: int32
             * @description Number of the assigned virtual function on its adapter.
             */
            vf?: number | null;
            /** @description PCI address of the assigned virtual function. */
            address?: string | null;
            /** @description Reason why frames take the paravirtual path. */
            reason?: string | null;
        };
        /** @description Traffic of a NIC that the kernel forwards directly. The NIC's counters include these frames. */
        KernelPathStatus: {
            /**
             * @description True if the kernel may forward frames between this NIC and others with an open path in its
             *     switch and VLAN and with the same MTU.
             */
            open: boolean;
            /** @description Reason why the path is closed. */
            reason?: string | null;
            /**
             * Format: int64
             * @description Frames received from the NIC over the path; a large frame (GSO) counts once.
             */
            rx_frames: number;
            /**
             * Format: int64
             * @description Bytes received from the NIC over the path.
             */
            rx_bytes: number;
            /**
             * Format: int64
             * @description Frames sent to the NIC over the path; a large frame (GSO) counts once.
             */
            tx_frames: number;
            /**
             * Format: int64
             * @description Bytes sent to the NIC over the path.
             */
            tx_bytes: number;
        };
        /**
         * @description Agreement of a measured value with the published value or target.
         * @enum {string}
         */
        LabAgreement: "agrees" | "differs" | "open" | "not-measured" | "shown";
        /** @description Comparison of one measure of one case in two runs. */
        LabCompared: {
            /** @description Id of the case; unique together with the measure. */
            case: string;
            /** @description Description of the case in both languages. */
            case_words: components["schemas"]["LabWords"];
            /** @description Id of the measure. */
            measure: string;
            /** @description Description of the measure in both languages. */
            measure_words: components["schemas"]["LabWords"];
            /** @description Unit of the measure; empty for a dimensionless one. */
            unit: string;
            /** @description Estimate of the first run. */
            a: components["schemas"]["LabEstimate"];
            /** @description Estimate of the second run. */
            b: components["schemas"]["LabEstimate"];
            /**
             * Format: double
             * @description Difference of `b` from `a` in percent of `a`; absent if `a` is 0.
             */
            more_percent?: number | null;
            /**
             * Format: double
             * @description Probability of such a difference by chance (p-value): Mann-Whitney test with Holm's
             *     correction.
             */
            p: number;
            /** @description Conclusion from the difference and its significance. */
            finding: components["schemas"]["LabFinding"];
        };
        /** @description Response of `GET /1.0/lab/compare`: two runs, compared by measure. */
        LabComparison: {
            /** @description Id of the first run. */
            a: string;
            /** @description Id of the second run. */
            b: string;
            /** @description True if the runs were made on different machines. */
            other_machine: boolean;
            /** @description Measures of the cases contained in both runs. */
            compared: components["schemas"]["LabCompared"][];
        };
        /** @description `[lab]`: lab runs shown by the API and the console. Read when the daemon starts. */
        LabConfig: {
            /**
             * @description Absolute path of the folder with the results of experiments. The API writes requests into it; `suimon lab work` executes them. A change takes effect when the daemon starts.
             * @default /var/lib/suimon/lab
             */
            results?: string;
        };
        /** @description Statistics of repeated measurements with a 95 % confidence interval of the mean. */
        LabEstimate: {
            /**
             * Format: int64
             * @description Number of samples (repetitions).
             */
            samples: number;
            /**
             * Format: double
             * @description Arithmetic mean of the samples.
             */
            mean: number;
            /**
             * Format: double
             * @description Median of the samples.
             */
            median: number;
            /**
             * Format: double
             * @description Lowest value of a sample.
             */
            least: number;
            /**
             * Format: double
             * @description Highest value of a sample.
             */
            most: number;
            /** @description Lower and upper bound of the mean (95 % confidence); absent for one sample. */
            interval?: number[] | null;
        };
        /** @description Figure of a plan: published, measured and simulated value. */
        LabFigure: {
            /** @description Id, unique in the plan. */
            id: string;
            /** @description Subject of the figure in both languages. */
            of: components["schemas"]["LabWords"];
            /** @description Published value as stated in the document. */
            published: components["schemas"]["LabWords"];
            measured?: null | components["schemas"]["LabEstimate"];
            /** @description Unit of the measured value; empty for a dimensionless one. */
            unit: string;
            /**
             * Format: int32
             * @description Decimal places shown; as many as the value needs if absent.
             */
            digits?: number | null;
            simulated?: null | components["schemas"]["LabSimulatedFigure"];
            /** @description True if the figure is a target of Suimon instead of a published value. */
            bar?: boolean;
            /** @description Agreement of the measured value with the expectation. */
            agreement: components["schemas"]["LabAgreement"];
        };
        /**
         * @description Conclusion of a comparison of two runs.
         * @enum {string}
         */
        LabFinding: "better" | "worse" | "different" | "not-shown" | "too-few";
        /** @description Plan of an experiment that can be run. */
        LabPlan: {
            /** @description Id of the plan. */
            id: string;
            /** @description Title of the plan in both languages. */
            title: components["schemas"]["LabWords"];
            /** @description Question that the experiment answers. */
            question: components["schemas"]["LabWords"];
            /** @description Short name of the document that the experiment reproduces. */
            document: string;
            /** @description Simulator scenario of the same experiment; absent if there is none. */
            simulation?: string | null;
            /** @description Requirements and duration at each scale. */
            scales: components["schemas"]["LabPlanScale"][];
        };
        /** @description Requirements of a plan at one scale. */
        LabPlanScale: {
            /** @description Scale that the values apply to. */
            scale: components["schemas"]["LabScale"];
            /**
             * Format: double
             * @description Estimated duration of the run in seconds.
             */
            seconds: number;
            /**
             * @description Requirements that this machine does not meet, with how to meet them. The plan can be run if
             *     empty.
             */
            missing: components["schemas"]["LabWords"][];
        };
        /** @description Progress of a run in progress. */
        LabProgress: {
            /** @description Case that is currently measured. */
            case: components["schemas"]["LabWords"];
            /**
             * Format: int32
             * @description Number of its current repetition, counted from 1.
             */
            repetition: number;
            /**
             * Format: int64
             * @description Parts completed; a part is one repetition of one case.
             */
            parts_done: number;
            /**
             * Format: int64
             * @description Start of the current part in milliseconds since 1970-01-01 UTC.
             */
            part_began_ms: number;
            /**
             * Format: int64
             * @description Estimated time in seconds from the start of the current part to the end of the run, without
             *     repetitions beyond those of the plan.
             */
            seconds_left: number;
        };
        /** @description Request for a run, queued or ended. */
        LabRequest: {
            /** @description Id of the request: time of submission in milliseconds since 1970-01-01 UTC. */
            id: string;
            /** @description Id of the plan; absent once the request ended. */
            plan?: string | null;
            scale?: null | components["schemas"]["LabScale"];
            /** @description Current state of the request. */
            state: components["schemas"]["LabRequestState"];
            /** @description Id of the run that the request started. */
            run?: string | null;
            /** @description Reason why the request failed or cannot be read. */
            error?: string | null;
        };
        /**
         * @description State of a request for a run.
         * @enum {string}
         */
        LabRequestState: "waiting" | "under-way" | "stopping" | "done" | "failed";
        /** @description Entry of the list of runs. */
        LabRun: {
            /** @description Id of the run: the name of its folder. */
            id: string;
            /** @description Id of the plan. */
            plan: string;
            /** @description True if the run is of the simulator, not of this host. */
            simulated: boolean;
            /** @description Scale that the run was started with. */
            scale?: string | null;
            /** @description Start time (RFC 3339, UTC). */
            began?: string | null;
            /** @description Current state of the run. */
            state: components["schemas"]["LabRunState"];
            progress?: null | components["schemas"]["LabProgress"];
            verdict?: null | components["schemas"]["LabWords"];
            /** @description Reason why a part of the run cannot be read, with the file's name. */
            error?: string | null;
        };
        /** @description Response of `GET /1.0/lab/runs/{id}`. */
        LabRunDetails: components["schemas"]["LabRun"] & {
            /** @description True if a report is available. */
            has_report: boolean;
            /** @description Reason why the run ended before all measurements; absent if it was completed. */
            cut_short?: string | null;
            /** @description Figures of the plan; empty without a report. */
            figures: components["schemas"]["LabFigure"][];
            /** @description Published figures with the simulator's results. */
            simulated_figures: components["schemas"]["LabSimulatedFigure"][];
        };
        /** @description Body of `POST /1.0/lab/runs`: request for a run. */
        LabRunRequest: {
            /** @description Id of the plan. */
            plan: string;
            /** @description Scale of the requested run. */
            scale?: components["schemas"]["LabScale"];
            /** @description True if `perf` records where CPU time is spent, at the cost of some CPU time. */
            profile?: boolean;
        };
        /**
         * @description State of a lab run.
         * @enum {string}
         */
        LabRunState: "whole" | "under-way" | "interrupted";
        /**
         * @description Scale of a run: duration and size.
         * @enum {string}
         */
        LabScale: "auto" | "quick" | "full";
        /** @description Published figure and the simulator's result. */
        LabSimulatedFigure: {
            /** @description Step of the simulated scenario. */
            step: string;
            /** @description Subject of the figure, such as a metric. */
            of: string;
            /** @description Published value as stated in the document. */
            published: string;
            /** @description Value that the model computed. */
            ours: string;
            /** @description True if the result is within the tolerance of the scenario. */
            agrees: boolean;
            /** @description Use of the figure: `calibration`, `held-out` or `bar`. */
            use: string;
        };
        /** @description Response of `GET /1.0/lab`: state of the lab. */
        LabStatus: {
            /** @description Folder that contains the runs. */
            results: string;
            worker?: null | components["schemas"]["LabWorker"];
            /** @description Action to start a worker; absent if one is running. */
            remedy?: string | null;
            /** @description Available plans, as reported by the last worker. */
            plans: components["schemas"]["LabPlan"][];
            /** @description Requests, oldest first: all that are queued or in progress, and the last that ended. */
            requests: components["schemas"]["LabRequest"][];
        };
        /** @description Text in both languages of the lab. */
        LabWords: {
            /** @description English text. */
            en: string;
            /** @description Japanese text. */
            ja: string;
        };
        /** @description Process that runs experiments: `suimon lab work`. */
        LabWorker: {
            /**
             * Format: int32
             * @description Process id of the worker.
             */
            pid: number;
        };
        /** @description Counters of LACP on one link since it joined the team (IEEE 802.1AX-2014, section 7.3.4). */
        LacpCounters: {
            /**
             * Format: int64
             * @description Valid LACPDUs received on the link.
             */
            lacpdus_rx: number;
            /**
             * Format: int64
             * @description LACPDUs sent on the link.
             */
            lacpdus_tx: number;
            /**
             * Format: int64
             * @description Marker PDUs received on the link.
             */
            markers_rx: number;
            /**
             * Format: int64
             * @description Marker PDUs without a response: rate limit exceeded, or link down.
             */
            markers_unanswered: number;
            /**
             * Format: int64
             * @description Marker Response PDUs received. This host sends no Marker PDUs.
             */
            marker_responses_rx: number;
            /**
             * Format: int64
             * @description Marker Response PDUs sent on the link.
             */
            marker_responses_tx: number;
            /**
             * Format: int64
             * @description Slow Protocols frames that were malformed or had an illegal subtype.
             */
            illegal_rx: number;
            /**
             * Format: int64
             * @description PDUs of other Slow Protocols.
             */
            unknown_rx: number;
            /**
             * Format: int64
             * @description LACPDUs that named a partner other than the known one: cables were changed, or LACPDUs are
             *     forged.
             */
            partner_changes: number;
            /**
             * Format: int64
             * @description LACPDUs that originated from this host.
             */
            loopbacks: number;
        };
        /** @description State of LACP on a member's link. */
        LacpMemberStatus: {
            /** @description Local end of the link (Actor). */
            actor: components["schemas"]["LacpPortStatus"];
            /** @description Remote end (Partner), as last received or as assumed by default. */
            partner: components["schemas"]["LacpPortStatus"];
            /** @description State of the Receive machine, such as `current`. */
            receive: string;
            /** @description State of the Periodic Transmission machine, such as `slow-periodic`. */
            periodic: string;
            /** @description State of the Mux machine, such as `waiting`. */
            mux: string;
            /** @description Result of the Selection Logic: `selected`, `standby` or `unselected`. */
            selected: string;
            /** @description True if frames received on the link are accepted. */
            collecting: boolean;
            /** @description True if frames may be sent on the link. */
            distributing: boolean;
            /** @description State of Actor churn detection, such as `churn`: the Actor does not reach synchronization. */
            actor_churn: string;
            /** @description State of Partner churn detection. */
            partner_churn: string;
            /**
             * Format: int32
             * @description Port of this host that the link is looped back to; absent without a loop.
             */
            looped_port?: number | null;
            /**
             * Format: int64
             * @description Time since the last accepted LACPDU in ms; absent if none was received.
             */
            last_pdu_age_ms?: number | null;
            /** @description Counters of LACP and Marker PDUs. */
            counters: components["schemas"]["LacpCounters"];
        };
        /** @description Partner System of a team in LACP mode. */
        LacpPartnerStatus: {
            /** @description MAC address of the System. */
            system: string;
            /**
             * Format: int32
             * @description Priority of the System. The end with the lower value selects the links in use.
             */
            system_priority: number;
            /**
             * Format: int32
             * @description Aggregation key of the partner's ports.
             */
            key: number;
        };
        /** @description One end of a link. Lower priority values take precedence. */
        LacpPortStatus: {
            /**
             * Format: int32
             * @description System priority of this end.
             */
            system_priority: number;
            /** @description MAC address of the System; all zero if unknown. */
            system: string;
            /**
             * Format: int32
             * @description Aggregation key. Ports of one System with equal keys can aggregate.
             */
            key: number;
            /**
             * Format: int32
             * @description Port priority of this end.
             */
            port_priority: number;
            /**
             * Format: int32
             * @description Number of the port within its System.
             */
            port: number;
            /** @description State bits that are set, such as `activity` and `synchronization`. */
            state: string[];
        };
        /**
         * @description Interval of the LACPDUs requested from the partner, and timeout of its information (IEEE
         *     802.1AX-2014, 6.4.1 d).
         * @enum {string}
         */
        LacpTimer: "slow" | "fast";
        /**
         * @description Body of `POST /1.0/stores/{name}/measure`: measures the store's capacity. The body may be
         *     absent.
         */
        MeasureStoreRequest: {
            /**
             * Format: int64
             * @description Measuring time of each pattern in seconds, 1 to 600; 10 if absent.
             * @default 10
             */
            seconds?: number;
            /**
             * @description True to measure while VMs or NBD clients use disks of the store. The measurement slows them
             *     down, and its result excludes the capacity that they use.
             * @default false
             */
            beside?: boolean;
        };
        /**
         * @description Word that selects the measured capacity.
         * @enum {string}
         */
        MeasureWord: "measure";
        /** @description Body of `POST /1.0/vms/{name}/migrate`: live migration to another node. */
        MigrateVmRequest: {
            /** @description Destination, one of the host's `[[node]]`s. */
            to: components["schemas"]["Name"];
            /**
             * Format: int32
             * @description Target downtime in ms, 1 to 60 000. The VM is stopped and handed over once the remaining
             *     memory can be sent in this time.
             */
            downtime_ms?: number;
            bandwidth?: null | components["schemas"]["ByteSize"];
            /**
             * @description True if the files of the VM's disks are deleted on this node after the migration. Otherwise
             *     they are kept, like those of a deleted disk.
             */
            with_files?: boolean;
        };
        /**
         * @description Phase of a migration, in chronological order.
         * @enum {string}
         */
        MigrationPhase: "preparing" | "copying-disks" | "copying-memory" | "switching" | "handed-over";
        /** @description Body of `POST /1.0/queues/{port}/{rx|tx}/{index}/move`. */
        MoveQueueRequest: {
            /**
             * Format: int32
             * @description Number of the new owning worker.
             */
            worker: number;
            /**
             * Format: int32
             * @deprecated
             * @description Use `worker`. Version 0.3 removes this old name of it.
             */
            processor?: number;
        };
        /**
         * @description Name of a resource: 1 to 63 letters, digits, `-`, `_` and `.`, starting with a letter or a
         *     digit. Safe in paths, URLs and metrics.
         */
        Name: string;
        /** @description Connections and buffer memory of one peer. */
        NbdPeerStatus: {
            /** @description Peer: `user` and the user's number, an IPv4 address, or an IPv6 network of 64 bits. */
            peer: string;
            /**
             * Format: int32
             * @description Number of connections of the peer.
             */
            connections: number;
            /**
             * Format: int64
             * @description Buffer memory of these connections in bytes.
             */
            buffer_bytes: number;
        };
        /** @description Connections and buffer memory of NBD clients, with their limits. */
        NbdStatus: {
            /**
             * Format: int32
             * @description Number of connections of clients to all disks.
             */
            connections: number;
            /**
             * Format: int32
             * @description Maximum number of connections in effect.
             */
            connections_max: number;
            /**
             * Format: int64
             * @description Buffer memory of all connections in bytes, reserved memory included.
             */
            buffer_bytes: number;
            /**
             * Format: int64
             * @description Maximum buffer memory in effect, in bytes.
             */
            buffer_max_bytes: number;
            /**
             * Format: int32
             * @description Maximum number of connections of a peer in effect.
             */
            peer_connections_max: number;
            /**
             * Format: int64
             * @description Maximum buffer memory of the connections of a peer in effect, in bytes.
             */
            peer_buffer_max_bytes: number;
            /**
             * Format: int64
             * @description Requests since the daemon started that were delayed or processed in parts, because a limit
             *     on buffer memory was reached.
             */
            shortages: number;
            /** @description Peers that have connections to the server. */
            peers?: components["schemas"]["NbdPeerStatus"][];
        };
        /**
         * @description Transport of an NBD connection.
         * @enum {string}
         */
        NbdWay: "unix" | "tcp" | "tls";
        /**
         * @description Backend of a NIC.
         * @enum {string}
         */
        NicBackend: "vhost-user" | "tap" | "legacy";
        /** @description `[[nic]]`: a virtual NIC on a switch. */
        NicConfig: {
            /** @description Name of the NIC, unique among NICs. It cannot be changed. */
            name: components["schemas"]["Name"];
            /** @description Switch that the NIC is connected to. */
            switch: components["schemas"]["Name"];
            /** @description Other side of the NIC: `vhost-user` (virtio NIC of a VM), `tap` (TAP device of the host or of a network namespace) or `legacy` (Intel 82574L emulated by QEMU, for guests without virtio drivers). A change replaces the resource. */
            backend: components["schemas"]["NicBackend"];
            /** @description Backends `vhost-user` and `legacy`: absolute path of the Unix socket; a path in the folder of the VM of the NIC if absent. A NIC without `socket` that no VM uses stays disconnected. A change replaces the resource. */
            socket?: string | null;
            /** @description Backend `vhost-user`: role of the daemon on the socket, `server` (the daemon listens) or `client` (QEMU listens, and the daemon connects); `server` if absent. A change replaces the resource. */
            mode?: null | components["schemas"]["SocketMode"];
            /** @description Backend `tap`: name of the TAP device; the name of the NIC if absent. A change replaces the resource. */
            device?: string | null;
            /** @description Backend `tap`: network namespace of the device, as named by `ip netns`; the namespace of the daemon if absent. A change replaces the resource. */
            netns?: string | null;
            /** @description MAC address of the NIC. Unless `mac_spoofing` is true, the switch drops frames that the guest sends from another address, and frames that other ports send from this address. If absent, a TAP NIC gets a random, permanent address when it is added, and a NIC in `nics` of a VM when the VM first names it. Any other NIC without `mac` may use every source address; the first one is bound to the NIC until the guest disconnects: other NICs may not send from it. A change is rejected while the NIC is plugged into a running VM, because its guest keeps the former address. A change replaces a vhost-user NIC, and is live on a TAP or legacy NIC. */
            mac?: string | null;
            /**
             * Format: int32
             * @description Access VLAN; with `trunk`, the native VLAN, whose frames are untagged on this port. If absent, untagged frames belong to the untagged network of the switch.
             */
            vlan?: number | null;
            /** @description VLANs and ranges of VLANs whose frames are tagged on this port: `[10, "20-29"]` in a host file, `10,20-29` on the command line. A port with `trunk` is a trunk port, otherwise an access port. */
            trunk?: (number | string)[] | null;
            /**
             * Format: int32
             * @description Number of queue pairs. A change replaces the resource.
             * @default 1
             */
            queues?: number;
            /**
             * Format: int32
             * @description Largest IP packet in bytes. A change replaces a vhost-user NIC, and is live on a TAP or legacy NIC.
             * @default 1500
             */
            mtu?: number;
            /**
             * @description True if the guest may use source addresses other than `mac`, and other ports may use `mac`. If true on a NIC without `mac`, the first source address is not bound to the NIC.
             * @default false
             */
            mac_spoofing?: boolean;
            /**
             * @description True if the port exchanges no frames with other isolated ports of the switch.
             * @default false
             */
            isolated?: boolean;
            /**
             * Format: int32
             * @description Limit of flooded frames (broadcast, multicast, unknown unicast) from the port in frames per second; further ones are dropped. No limit if absent.
             */
            storm_limit_fps?: number | null;
            /**
             * Format: int64
             * @description Limit of the rate at which the guest transmits, in bits per second; frames above it stay in the queue of the guest. No limit if absent.
             */
            bandwidth_max_bps?: number | null;
            /**
             * Format: int32
             * @description Largest number of MAC addresses that the switch learns on this port. Frames from further addresses are forwarded, but frames to these addresses are flooded.
             * @default 1024
             */
            learned_max?: number;
            /**
             * @description Backend `tap`: true if the kernel may forward frames between this NIC and other NICs with this key, bypassing the switch. Both NICs need the same switch, VLAN and MTU. The switch forwards all frames of a NIC that is captured, has `trunk`, `isolated` or `bandwidth_max_bps`, or has `rx_checksum` or `segmentation` disabled. Requires `netns`.
             * @default false
             */
            kernel_path?: boolean;
            /**
             * Format: int32
             * @description Weight of each queue of the NIC in VMQ of mode `static`, which assigns queues to workers so that the sums of weights are about equal. With 0, in any mode, the base worker services the NIC.
             * @default 100
             */
            vmq_weight?: number;
            /**
             * Format: int32
             * @description Priority of the NIC in the assignment of virtual functions (VFs); the highest value is served first. With 0, the NIC gets no VF. A value above 0 requires `mac`. For a NIC of a VM, `suimon nic set` also accepts the random address that the NIC has; a host file must set `mac`. If the value was 0 when the VM started or the NIC was plugged in, a higher value takes effect at the next start of the VM, or when the NIC is plugged in again. No effect on a switch without `iov`.
             * @default 0
             */
            iov_weight?: number;
            /** @description Offloads between the guest and the switch. */
            offload?: components["schemas"]["OffloadConfig"];
        };
        /** @description Merge patch (RFC 7386) of `nic`: keys that are absent stay as they are, null removes a key. */
        NicConfigPatch: {
            /** @description Name of the NIC, unique among NICs. It cannot be changed. */
            name?: components["schemas"]["Name"];
            /** @description Switch that the NIC is connected to. */
            switch?: components["schemas"]["Name"];
            /** @description Other side of the NIC: `vhost-user` (virtio NIC of a VM), `tap` (TAP device of the host or of a network namespace) or `legacy` (Intel 82574L emulated by QEMU, for guests without virtio drivers). A change replaces the resource. */
            backend?: components["schemas"]["NicBackend"];
            /** @description Backends `vhost-user` and `legacy`: absolute path of the Unix socket; a path in the folder of the VM of the NIC if absent. A NIC without `socket` that no VM uses stays disconnected. A change replaces the resource. */
            socket?: string | null;
            /** @description Backend `vhost-user`: role of the daemon on the socket, `server` (the daemon listens) or `client` (QEMU listens, and the daemon connects); `server` if absent. A change replaces the resource. */
            mode?: null | components["schemas"]["SocketMode"];
            /** @description Backend `tap`: name of the TAP device; the name of the NIC if absent. A change replaces the resource. */
            device?: string | null;
            /** @description Backend `tap`: network namespace of the device, as named by `ip netns`; the namespace of the daemon if absent. A change replaces the resource. */
            netns?: string | null;
            /** @description MAC address of the NIC. Unless `mac_spoofing` is true, the switch drops frames that the guest sends from another address, and frames that other ports send from this address. If absent, a TAP NIC gets a random, permanent address when it is added, and a NIC in `nics` of a VM when the VM first names it. Any other NIC without `mac` may use every source address; the first one is bound to the NIC until the guest disconnects: other NICs may not send from it. A change is rejected while the NIC is plugged into a running VM, because its guest keeps the former address. A change replaces a vhost-user NIC, and is live on a TAP or legacy NIC. */
            mac?: string | null;
            /**
             * Format: int32
             * @description Access VLAN; with `trunk`, the native VLAN, whose frames are untagged on this port. If absent, untagged frames belong to the untagged network of the switch.
             */
            vlan?: number | null;
            /** @description VLANs and ranges of VLANs whose frames are tagged on this port: `[10, "20-29"]` in a host file, `10,20-29` on the command line. A port with `trunk` is a trunk port, otherwise an access port. */
            trunk?: (number | string)[] | null;
            /**
             * Format: int32
             * @description Number of queue pairs. A change replaces the resource.
             */
            queues?: number | null;
            /**
             * Format: int32
             * @description Largest IP packet in bytes. A change replaces a vhost-user NIC, and is live on a TAP or legacy NIC.
             */
            mtu?: number | null;
            /** @description True if the guest may use source addresses other than `mac`, and other ports may use `mac`. If true on a NIC without `mac`, the first source address is not bound to the NIC. */
            mac_spoofing?: boolean | null;
            /** @description True if the port exchanges no frames with other isolated ports of the switch. */
            isolated?: boolean | null;
            /**
             * Format: int32
             * @description Limit of flooded frames (broadcast, multicast, unknown unicast) from the port in frames per second; further ones are dropped. No limit if absent.
             */
            storm_limit_fps?: number | null;
            /**
             * Format: int64
             * @description Limit of the rate at which the guest transmits, in bits per second; frames above it stay in the queue of the guest. No limit if absent.
             */
            bandwidth_max_bps?: number | null;
            /**
             * Format: int32
             * @description Largest number of MAC addresses that the switch learns on this port. Frames from further addresses are forwarded, but frames to these addresses are flooded.
             */
            learned_max?: number | null;
            /** @description Backend `tap`: true if the kernel may forward frames between this NIC and other NICs with this key, bypassing the switch. Both NICs need the same switch, VLAN and MTU. The switch forwards all frames of a NIC that is captured, has `trunk`, `isolated` or `bandwidth_max_bps`, or has `rx_checksum` or `segmentation` disabled. Requires `netns`. */
            kernel_path?: boolean | null;
            /**
             * Format: int32
             * @description Weight of each queue of the NIC in VMQ of mode `static`, which assigns queues to workers so that the sums of weights are about equal. With 0, in any mode, the base worker services the NIC.
             */
            vmq_weight?: number | null;
            /**
             * Format: int32
             * @description Priority of the NIC in the assignment of virtual functions (VFs); the highest value is served first. With 0, the NIC gets no VF. A value above 0 requires `mac`. For a NIC of a VM, `suimon nic set` also accepts the random address that the NIC has; a host file must set `mac`. If the value was 0 when the VM started or the NIC was plugged in, a higher value takes effect at the next start of the VM, or when the NIC is plugged in again. No effect on a switch without `iov`.
             */
            iov_weight?: number | null;
            /** @description Offloads between the guest and the switch. */
            offload?: null | components["schemas"]["OffloadConfigPatch"];
        };
        /** @description Observed state of a NIC. */
        NicStatus: {
            /** @description Desired state of the NIC. */
            config: components["schemas"]["NicConfig"];
            /** @description Health, with the reason if it is not `up`. */
            condition: components["schemas"]["Condition"];
            /** @description Counters of the port's frames and drops. */
            counters: components["schemas"]["PortCounters"];
            /** @description State of the port's offloads. */
            offloads: components["schemas"]["OffloadStatus"][];
            /** @description Negotiated virtio features as a hexadecimal number; absent for other NICs. */
            virtio_features?: string | null;
            /**
             * Format: int32
             * @description Number of queue pairs in use.
             */
            queue_pairs: number;
            /**
             * Format: int32
             * @description MAC addresses learned on the port.
             */
            learned: number;
            /**
             * @description Source address bound to a NIC without `mac`. Frames with it from other NICs are dropped
             *     until the guest disconnects.
             */
            bound_mac?: string | null;
            kernel_path?: null | components["schemas"]["KernelPathStatus"];
            iov?: null | components["schemas"]["IovStatus"];
        };
        /** @description `[[node]]`: another host with Suimon, and how to reach its API. */
        NodeConfig: {
            /** @description Name of the node, unique among nodes, as used by `suimon vm migrate --to`. It cannot be changed. */
            name: components["schemas"]["Name"];
            /** @description Host name or IP address and TCP port of the API of the node, such as `192.0.2.2:8443` or `node2.example.net:8443`. */
            address: string;
            /** @description Absolute path of a PEM file with CA certificates that sign the certificate of the node, or with that certificate itself. */
            ca_certificate: string;
            /** @description Absolute path of a file whose first line is the API token of the node. The file must have no permissions for others (`chmod o=`). */
            token_file: string;
            /** @description Name that the certificate of the node must contain; the host in `address` if absent. */
            server_name?: string | null;
            /**
             * @deprecated
             * @description Use `ca_certificate`. Version 0.3 removes this old name of it.
             */
            authority?: string;
        };
        /** @description Merge patch (RFC 7386) of `node`: keys that are absent stay as they are, null removes a key. */
        NodeConfigPatch: {
            /** @description Name of the node, unique among nodes, as used by `suimon vm migrate --to`. It cannot be changed. */
            name?: components["schemas"]["Name"];
            /** @description Host name or IP address and TCP port of the API of the node, such as `192.0.2.2:8443` or `node2.example.net:8443`. */
            address?: string;
            /** @description Absolute path of a PEM file with CA certificates that sign the certificate of the node, or with that certificate itself. */
            ca_certificate?: string;
            /** @description Absolute path of a file whose first line is the API token of the node. The file must have no permissions for others (`chmod o=`). */
            token_file?: string;
            /** @description Name that the certificate of the node must contain; the host in `address` if absent. */
            server_name?: string | null;
            /**
             * @deprecated
             * @description Use `ca_certificate`. Version 0.3 removes this old name of it.
             */
            authority?: string;
        };
        /**
         * @description Response of `GET /1.0/nodes/{name}`: state of another node, requested from it at the time of the
         *     response.
         */
        NodeStatus: {
            /** @description Desired state of the node. */
            config: components["schemas"]["NodeConfig"];
            /**
             * @description `up` if the node responds, `down` if it does not, `failed` if it rejects the request or
             *     cannot be contacted.
             */
            condition: components["schemas"]["Condition"];
            /** @description Host name of the node. */
            host?: string | null;
            /** @description Version of the node's daemon. */
            version?: string | null;
            drain?: null | components["schemas"]["DrainStatus"];
        };
        /**
         * @description `[nic.offload]`, `[uplink.offload]` and `[switch.host_offload]`: offloads of a port, as seen by
         *     the user of the port's device: the guest for a NIC, the host for a host NIC, the switch for an
         *     uplink's device. Each is enabled by default.
         */
        OffloadConfig: {
            /**
             * @description NIC, host NIC: true if the guest or host may send frames with a partial transport checksum, which the switch completes where the receiver requires it. Uplink: true if the switch may leave the checksum to the device.
             * @default true
             */
            tx_checksum?: boolean;
            /**
             * @description NIC, host NIC: true if frames to the guest or host may have a partial or already verified transport checksum. Uplink: true if a checksum that the device reports as valid is not verified again.
             * @default true
             */
            rx_checksum?: boolean;
            /**
             * @description No effect: sent frames always have a complete IPv4 header checksum, because virtio has no offload for it.
             * @default true
             */
            tx_ip_checksum?: boolean;
            /**
             * @description No effect: the receiver always verifies the IPv4 header checksum, because virtio has no offload for it.
             * @default true
             */
            rx_ip_checksum?: boolean;
            /**
             * @description True if TCP and UDP frames may be larger than the MTU in both directions (TSO, USO, GSO).
             * @default true
             */
            segmentation?: boolean;
            /**
             * @description True if received segments may be coalesced (LRO, GRO). Coalescing from an uplink to a NIC requires the key on both.
             * @default true
             */
            receive_coalescing?: boolean;
        };
        /** @description Merge patch (RFC 7386) of `offload`: keys that are absent stay as they are, null removes a key. */
        OffloadConfigPatch: {
            /** @description NIC, host NIC: true if the guest or host may send frames with a partial transport checksum, which the switch completes where the receiver requires it. Uplink: true if the switch may leave the checksum to the device. */
            tx_checksum?: boolean | null;
            /** @description NIC, host NIC: true if frames to the guest or host may have a partial or already verified transport checksum. Uplink: true if a checksum that the device reports as valid is not verified again. */
            rx_checksum?: boolean | null;
            /** @description No effect: sent frames always have a complete IPv4 header checksum, because virtio has no offload for it. */
            tx_ip_checksum?: boolean | null;
            /** @description No effect: the receiver always verifies the IPv4 header checksum, because virtio has no offload for it. */
            rx_ip_checksum?: boolean | null;
            /** @description True if TCP and UDP frames may be larger than the MTU in both directions (TSO, USO, GSO). */
            segmentation?: boolean | null;
            /** @description True if received segments may be coalesced (LRO, GRO). Coalescing from an uplink to a NIC requires the key on both. */
            receive_coalescing?: boolean | null;
        };
        /**
         * @description Component that performs an offload for frames that require it.
         * @enum {string}
         */
        OffloadDoer: "guest" | "nic" | "kernel" | "software" | "egress" | "nobody";
        /** @description State of one offload of a NIC, host NIC or uplink, with the reason. */
        OffloadStatus: {
            /**
             * @description Name, such as `rx_checksum` or `tx_tcp4_segmentation`, as seen by the guest; on an uplink,
             *     as seen by the switch, which uses the device.
             */
            name: string;
            /**
             * @description True if the other side supports the offload: the guest's driver, the kernel of a TAP, the
             *     uplink's device. Absent if unknown: disabled features are not offered to a virtio driver,
             *     and some kernels do not report a device's features.
             */
            supported?: boolean | null;
            /** @description True if the configuration enables the offload. */
            enabled: boolean;
            /** @description True if the offload is in use. */
            effective: boolean;
            /** @description Component that performs the offload. */
            by: components["schemas"]["OffloadDoer"];
            /** @description Reason for the offload's state. */
            reason: string;
        };
        /**
         * @description Asynchronous operation. Every change of desired state is one.
         *
         *     ```text
         *     running ──► succeeded
         *        ├──────► failed
         *        └──────► cancelled
         *     ```
         */
        Operation: {
            /**
             * Format: int64
             * @description Id, unique while the daemon runs.
             */
            id: number;
            /** @description Kind, such as `apply`, `nic add`, `queue move`, `nic capture` or `disk convert`. */
            kind: string;
            /** @description Object concerned, such as `nic/web` or `host`. */
            subject: string;
            /** @description Current state of the operation. */
            state: components["schemas"]["OperationState"];
            /** @description Number of steps completed so far. */
            steps_done: number;
            /** @description Number of steps of the whole operation. */
            steps: number;
            /** @description Description of the current step. */
            step?: string | null;
            plan?: null | components["schemas"]["Plan"];
            /** @description Human-readable findings, one per line, such as those of a disk check. */
            report?: string[];
            /**
             * @description Warnings about the request, such as the use of an old name; only in the response to the
             *     request.
             */
            warnings?: string[];
            error?: null | components["schemas"]["ApiError"];
            /**
             * @description True if `plan` and `report` were removed and the message of `error` was shortened, because
             *     the details of operations that ended later need the memory.
             */
            details_dropped?: boolean;
            /**
             * Format: int64
             * @description Start time in milliseconds since 1970-01-01 UTC.
             */
            started_unix_ms: number;
            /**
             * Format: int64
             * @description End time in milliseconds since 1970-01-01 UTC; absent while running.
             */
            ended_unix_ms?: number | null;
        };
        /**
         * @description State of an asynchronous operation.
         * @enum {string}
         */
        OperationState: "running" | "succeeded" | "failed" | "cancelled";
        /** @description `[[pf]]`: an SR-IOV network adapter (its physical function) and its virtual functions. */
        PfConfig: {
            /** @description Name of the adapter, unique among adapters. It cannot be changed. */
            name: components["schemas"]["Name"];
            /** @description Adapter: its network device, or its PCI address, which does not change when the device is renamed. */
            device: string;
            /**
             * Format: int32
             * @description Number of virtual functions (VFs), from 0 to the number that the adapter supports (`suimon vf list`). It can change only while no VF is in use. A change resets the adapter: its link is down for some seconds.
             * @default 0
             */
            vfs?: number;
            /**
             * @description Settings of single VFs. Keys that are absent leave the setting of the VF as it is.
             * @default []
             */
            vf?: components["schemas"]["VfConfig"][];
        };
        /** @description Merge patch (RFC 7386) of `pf`: keys that are absent stay as they are, null removes a key. */
        PfConfigPatch: {
            /** @description Name of the adapter, unique among adapters. It cannot be changed. */
            name?: components["schemas"]["Name"];
            /** @description Adapter: its network device, or its PCI address, which does not change when the device is renamed. */
            device?: string;
            /**
             * Format: int32
             * @description Number of virtual functions (VFs), from 0 to the number that the adapter supports (`suimon vf list`). It can change only while no VF is in use. A change resets the adapter: its link is down for some seconds.
             */
            vfs?: number | null;
            /** @description Settings of single VFs. Keys that are absent leave the setting of the VF as it is. */
            vf?: components["schemas"]["VfConfig"][] | null;
        };
        /** @description Desired and observed state of an adapter. */
        PfStatus: {
            /** @description Desired state of the adapter. */
            config: components["schemas"]["PfConfig"];
            /** @description Agreement of the settings read back with the desired state. */
            condition: components["schemas"]["Condition"];
            adapter?: null | components["schemas"]["SriovAdapter"];
        };
        /** @description Steps of a change, in order of execution. */
        Plan: {
            /** @description Steps; empty if the desired state does not change. */
            steps: components["schemas"]["PlanStep"][];
            /** @description Warnings about the request, such as the use of an old name. */
            warnings?: string[];
        };
        /**
         * @description Action of a step on its resource.
         * @enum {string}
         */
        PlanAction: "create" | "change-live" | "replace" | "delete";
        /** @description Step of a plan: one action on one resource. */
        PlanStep: {
            /** @description Action on the resource. */
            action: components["schemas"]["PlanAction"];
            /** @description Resource, such as `nic/web`. */
            resource: string;
            /** @description Changed keys; empty for create and delete. */
            changes?: components["schemas"]["FieldChange"][];
            /**
             * @description Notice for the user, for example that the change takes effect at the next start of the
             *     daemon.
             */
            note?: string | null;
        };
        /**
         * @description Counters of one port since its creation, as seen by the switch: `rx` frames came from the port,
         *     `tx` frames went to it.
         */
        PortCounters: {
            /**
             * Format: int64
             * @description Frames received from the port; a large frame (GSO) counts once.
             */
            rx_frames: number;
            /**
             * Format: int64
             * @description Bytes received from the port.
             */
            rx_bytes: number;
            /**
             * Format: int64
             * @description Frames sent to the port; a large frame (GSO) counts once.
             */
            tx_frames: number;
            /**
             * Format: int64
             * @description Bytes sent to the port.
             */
            tx_bytes: number;
            /** @description Frames received from the port and dropped, by reason. */
            rx_dropped: components["schemas"]["DropCounter"][];
            /** @description Frames for the port that were dropped, by reason. */
            tx_dropped: components["schemas"]["DropCounter"][];
            /**
             * Format: int64
             * @description Frames received from the port that were flooded.
             */
            flooded: number;
            /**
             * Format: int64
             * @description Frames segmented in software before transmission to the port.
             */
            software_segmented: number;
            /**
             * Format: int64
             * @description Frames with a checksum completed in software before transmission to the port.
             */
            software_checksummed: number;
            /**
             * Format: int64
             * @description Frames coalesced with others of their TCP stream in software before transmission to the
             *     port.
             */
            software_coalesced_segments: number;
            /**
             * Format: int64
             * @description Large frames that resulted from coalescing. They are included in `tx_frames`.
             */
            software_coalesced_units: number;
        };
        /** @description Setting changed by the daemon. */
        PowerChangedStatus: {
            /** @description Path of the setting's file in sysfs. */
            file: string;
            /** @description Original value, which the daemon restores. */
            before: string;
            /** @description Value written by the daemon. */
            written: string;
            /** @description Current value; absent if the file does not exist, for example while the CPU is offline. */
            now?: string | null;
        };
        /**
         * @description `[power]`: power management of the host's CPUs, which are unchanged without this table. A key
         *     given here takes precedence over the plan. The daemon restores changed settings when it ends.
         */
        PowerConfig: {
            /** @description Power plan: `balanced`, `high-performance`, `power-saver`, or `custom`. An absent key has the value of the plan. The plan `custom` leaves CPU settings without a key unchanged; keys of workers and VMQ then have the values of `balanced`. */
            plan: components["schemas"]["PowerPlanName"];
            /** @description Name of the cpufreq governor, such as `schedutil`; the value of the plan if absent. */
            governor?: null | components["schemas"]["Name"];
            /** @description Energy-performance preference of CPUs that select their frequency themselves; the value of the plan if absent. */
            energy_preference?: null | components["schemas"]["EnergyPreference"];
            /**
             * Format: int32
             * @description Lowest frequency in percent of the highest frequency of the CPU; the value of the plan if absent.
             */
            performance_percent_min?: number | null;
            /**
             * Format: int32
             * @description Highest permitted frequency in percent of the highest frequency of the CPU; the value of the plan if absent.
             */
            performance_percent_max?: number | null;
            /** @description True if frequencies above the nominal one are permitted; the value of the plan if absent. */
            turbo?: boolean | null;
            /** @description Name of the deepest idle state that CPUs may enter, such as `C1E`; no limit if absent. */
            idle_state_max?: string | null;
            /**
             * Format: int32
             * @description Longest exit latency in microseconds of the idle states that CPUs may enter; no limit if absent.
             */
            idle_latency_us_max?: number | null;
            /** @description True if dynamic VMQ moves all queues away from lightly loaded workers, so that these sleep (park); the value of the plan if absent. */
            parking?: boolean | null;
            /**
             * Format: int32
             * @description Poll budget in microseconds: time for which a worker polls its queues after the last frame or request before it sleeps. While requests are in flight at devices that complete them within four times this time, the worker polls for longer, up to four times this time. The value of the plan if absent.
             */
            poll_us?: number | null;
            /**
             * Format: int32
             * @description High mark of dynamic VMQ: load in percent of a worker's time above which VMQ moves queues away from the worker. The value of the plan if absent.
             */
            vmq_high_percent?: number | null;
            /**
             * Format: int32
             * @description Low mark of dynamic VMQ: load in percent of a worker's time at or below which VMQ, with `parking`, may move all queues away from the worker. At least 30 less than `vmq_high_percent`. The value of the plan if absent.
             */
            vmq_low_percent?: number | null;
        };
        /** @description Merge patch (RFC 7386) of `power`: keys that are absent stay as they are, null removes a key. */
        PowerConfigPatch: {
            /** @description Power plan: `balanced`, `high-performance`, `power-saver`, or `custom`. An absent key has the value of the plan. The plan `custom` leaves CPU settings without a key unchanged; keys of workers and VMQ then have the values of `balanced`. */
            plan?: components["schemas"]["PowerPlanName"];
            /** @description Name of the cpufreq governor, such as `schedutil`; the value of the plan if absent. */
            governor?: null | components["schemas"]["Name"];
            /** @description Energy-performance preference of CPUs that select their frequency themselves; the value of the plan if absent. */
            energy_preference?: null | components["schemas"]["EnergyPreference"];
            /**
             * Format: int32
             * @description Lowest frequency in percent of the highest frequency of the CPU; the value of the plan if absent.
             */
            performance_percent_min?: number | null;
            /**
             * Format: int32
             * @description Highest permitted frequency in percent of the highest frequency of the CPU; the value of the plan if absent.
             */
            performance_percent_max?: number | null;
            /** @description True if frequencies above the nominal one are permitted; the value of the plan if absent. */
            turbo?: boolean | null;
            /** @description Name of the deepest idle state that CPUs may enter, such as `C1E`; no limit if absent. */
            idle_state_max?: string | null;
            /**
             * Format: int32
             * @description Longest exit latency in microseconds of the idle states that CPUs may enter; no limit if absent.
             */
            idle_latency_us_max?: number | null;
            /** @description True if dynamic VMQ moves all queues away from lightly loaded workers, so that these sleep (park); the value of the plan if absent. */
            parking?: boolean | null;
            /**
             * Format: int32
             * @description Poll budget in microseconds: time for which a worker polls its queues after the last frame or request before it sleeps. While requests are in flight at devices that complete them within four times this time, the worker polls for longer, up to four times this time. The value of the plan if absent.
             */
            poll_us?: number | null;
            /**
             * Format: int32
             * @description High mark of dynamic VMQ: load in percent of a worker's time above which VMQ moves queues away from the worker. The value of the plan if absent.
             */
            vmq_high_percent?: number | null;
            /**
             * Format: int32
             * @description Low mark of dynamic VMQ: load in percent of a worker's time at or below which VMQ, with `parking`, may move all queues away from the worker. At least 30 less than `vmq_high_percent`. The value of the plan if absent.
             */
            vmq_low_percent?: number | null;
        };
        /** @description Power management state of one CPU, as reported by the kernel. */
        PowerCpuStatus: {
            /**
             * Format: int32
             * @description Number of the logical CPU.
             */
            cpu: number;
            /** @description True if the CPU is online. */
            online: boolean;
            /** @description cpufreq driver of the CPU. */
            driver?: string | null;
            /** @description cpufreq governor of the CPU. */
            governor?: string | null;
            /** @description Energy-performance preference of the CPU. */
            energy_preference?: string | null;
            /**
             * Format: int32
             * @description Lowest permitted frequency in kHz.
             */
            khz_min?: number | null;
            /**
             * Format: int32
             * @description Highest permitted frequency in kHz.
             */
            khz_max?: number | null;
            /** @description Permitted idle states, shallowest first. */
            idle_states: string[];
        };
        /** @description Settings of the data plane that trade power for latency. */
        PowerDataPlaneStatus: {
            /** @description True if dynamic VMQ moves queues away from lightly loaded workers, so that these park. */
            parking: boolean;
            /**
             * Format: int32
             * @description Poll budget of a worker in microseconds.
             */
            poll_us: number;
            /**
             * Format: int32
             * @description High mark of dynamic VMQ in percent of a worker's time.
             */
            vmq_high_percent: number;
            /**
             * Format: int32
             * @description Low mark of dynamic VMQ in percent of a worker's time.
             */
            vmq_low_percent: number;
        };
        /**
         * @description Extent to which the desired CPU settings are in effect.
         * @enum {string}
         */
        PowerEffect: "off" | "full" | "partial" | "none";
        /** @description Energy and power of the host. */
        PowerEnergyStatus: {
            /**
             * Format: int64
             * @description Recent power of packages and memory in milliwatts; absent if unknown, and for the first
             *     request after a long time.
             */
            milliwatts?: number | null;
            /** @description Reason why energy is unknown. */
            unavailable_reason?: string | null;
            /** @description Energy counters of powercap, by zone. */
            zones: components["schemas"]["PowerZoneStatus"][];
            /**
             * @deprecated
             * @description Use `unavailable_reason`. Version 0.3 removes this old name of it.
             */
            lacking?: string | null;
        };
        /**
         * @description Power plan, with the names used by Windows.
         * @enum {string}
         */
        PowerPlanName: "balanced" | "high-performance" | "power-saver" | "custom";
        /** @description Desired setting and its state. */
        PowerSettingStatus: {
            /** @description CPUs concerned, ascending; empty for a setting of the host. */
            cpus: number[];
            /**
             * @description Setting: `governor`, `energy_preference`, `performance_percent_min`,
             *     `performance_percent_max`, `turbo` or `idle_states`.
             */
            setting: string;
            /** @description Desired value of the setting. */
            required: string;
            /** @description True if the desired value is in effect. */
            in_effect: boolean;
            /** @description Current value read from sysfs; absent if the files do not exist. */
            now?: string | null;
            /** @description Reason why the value is not in effect, or a remark. */
            reason?: string | null;
            /**
             * @deprecated
             * @description Use `required`. Version 0.3 removes this old name of it.
             */
            wanted?: string;
            /**
             * @deprecated
             * @description Use `reason`. Version 0.3 removes this old name of it.
             */
            why_not?: string | null;
        };
        /** @description Response of `GET /1.0/power`. */
        PowerStatus: {
            config?: null | components["schemas"]["PowerConfig"];
            /** @description Extent to which the CPU settings are in effect. */
            effect: components["schemas"]["PowerEffect"];
            /** @description Desired settings of the host and of each CPU. */
            settings: components["schemas"]["PowerSettingStatus"][];
            /** @description Settings in effect in the data plane. */
            data_plane: components["schemas"]["PowerDataPlaneStatus"];
            /** @description CPUs of the host, by number. */
            cpus: components["schemas"]["PowerCpuStatus"][];
            /** @description Settings changed by the daemon, with the values that it will restore. */
            changed: components["schemas"]["PowerChangedStatus"][];
            /** @description Energy counters and power of the host. */
            energy: components["schemas"]["PowerEnergyStatus"];
        };
        /** @description Energy counter of powercap (zone). */
        PowerZoneStatus: {
            /** @description Folder in powercap, such as `intel-rapl:0`. */
            zone: string;
            /** @description Name of the zone, such as `package-0`. */
            name: string;
            /**
             * Format: int64
             * @description Energy in microjoules since the daemon first read the counter. Intervals without a reading
             *     are omitted if the counter may have wrapped more than once in them.
             */
            energy_uj: number;
            /**
             * Format: int64
             * @description Recent power of the zone in milliwatts.
             */
            milliwatts?: number | null;
            /**
             * @description True if the zone is part of the host's sum. Zones of cores are not, since their package
             *     contains them.
             */
            counted: boolean;
        };
        /**
         * @description Time of a worker since its start in ns, by activity (stage). Each nanosecond counts for one
         *     stage; the stages add up to the total. While the worker runs, the values are up to 1 ms old, or
         *     one round of its queues if that takes longer.
         */
        ProcessorStages: {
            /**
             * Format: int64
             * @description Taking frames from queues: copies out of rings or reads from devices, checks, and ingress
             *     capture.
             */
            copy_in_ns: number;
            /**
             * Format: int64
             * @description Parsing headers and determining destinations.
             */
            classify_ns: number;
            /**
             * Format: int64
             * @description Finding and coalescing segments of streams.
             */
            coalesce_ns: number;
            /**
             * Format: int64
             * @description Segmenting large frames, except checksums of the segments.
             */
            segment_ns: number;
            /**
             * Format: int64
             * @description Completing checksums of frames and segments.
             */
            checksum_ns: number;
            /**
             * Format: int64
             * @description Putting frames into queues, or handing them to the workers that own these.
             */
            copy_out_ns: number;
            /**
             * Format: int64
             * @description Publishing the frames and notifying the other sides.
             */
            notify_ns: number;
            /**
             * Format: int64
             * @description Taking, translating, submitting and completing disk requests.
             */
            storage_ns?: number;
            /**
             * Format: int64
             * @description Searching for work: polls without result, descriptors, messages of other workers and the
             *     control plane, entering and leaving sleep.
             */
            poll_ns: number;
            /**
             * Format: int64
             * @description Sleeping, including the current sleep up to the time of the query.
             */
            idle_ns: number;
        };
        /** @description Observed state of a worker. */
        ProcessorStatus: {
            /**
             * Format: int32
             * @description Number of the worker, counted from 0.
             */
            id: number;
            /**
             * Format: int32
             * @description Logical CPU to which the worker is pinned; absent if it is not pinned, which is the case
             *     without the host's `worker_cpus`.
             */
            cpu?: number | null;
            /** @description Number of queues that the worker owns. */
            queues: number;
            /**
             * Format: int64
             * @description CPU time since the daemon started, in ns.
             */
            cpu_time_ns: number;
            /**
             * Format: int64
             * @description Time not sleeping in ns: the sum of all stages except idle.
             */
            busy_ns: number;
            /**
             * Format: int64
             * @description Number of batches taken from queues.
             */
            batches: number;
            /**
             * Format: int64
             * @description Number of frames taken from queues.
             */
            frames: number;
            /**
             * Format: int64
             * @description Number of times the worker went to sleep.
             */
            sleeps: number;
            /** @description True if the worker is sleeping. */
            asleep: boolean;
            /**
             * Format: int64
             * @description Number of times the worker backed off from polling for device completions because other
             *     threads required its CPU.
             */
            yields?: number;
            /** @description True if the worker is currently backed off. */
            yielding?: boolean;
            /** @description Time of the worker by stage. */
            stages?: components["schemas"]["ProcessorStages"];
            /**
             * Format: int64
             * @deprecated
             * @description Use `yields`. Version 0.3 removes this old name of it.
             */
            rests?: number;
            /**
             * @deprecated
             * @description Use `yielding`. Version 0.3 removes this old name of it.
             */
            resting?: boolean;
        };
        /**
         * @description Guaranteed, demanded and delivered rates of a disk in a time window, in normalised operations
         *     per second.
         */
        QosDelivery: {
            /**
             * Format: int64
             * @description Length of the window in ns; shorter than nominal after the disk was opened.
             */
            window_ns: number;
            /**
             * Format: int64
             * @description Guaranteed rate: the minimum, multiplied by the share of the window in which the disk had
             *     requests. With an aggregated policy, the guarantee of all its disks in the store.
             */
            guaranteed_iops: number;
            /**
             * Format: int64
             * @description Demanded rate: the rate of the client's requests.
             */
            demand_iops: number;
            /**
             * Format: int64
             * @description Delivered rate: the rate of completed requests.
             */
            delivered_iops: number;
            /**
             * @description Time that requests were queued, in ns, summed over requests, by cause: `own-maximum`,
             *     `own-bandwidth`, `shared-policy`, `others-minimums`, `device-depth`.
             */
            queued_ns?: {
                [key: string]: number;
            };
            /**
             * @description Shares of the window's time by limiting factor, first limiting factor first. Their sum is 1
             *     000 000.
             */
            limited_by?: components["schemas"]["QosTimeShare"][];
            /**
             * Format: int64
             * @description Mean number of requests queued or in flight, over times with at least one, in thousandths.
             */
            queue_depth_milli?: number;
            /**
             * Format: int64
             * @description Mean service time of reads and writes at the device in ns; absent if none completed.
             */
            device_latency_ns?: number | null;
            /**
             * Format: int64
             * @description Baseline latency of the device for these requests (reads and writes separately, by size) at
             *     the same depth, in ns: the lowest of the last one to two hours, or that of the store's
             *     measurement.
             */
            device_baseline_latency_ns?: number | null;
            /**
             * Format: int64
             * @deprecated
             * @description Use `guaranteed_iops`. Version 0.3 removes this old name of it.
             */
            entitled_iops?: number;
            /**
             * Format: int64
             * @deprecated
             * @description Use `demand_iops`. Version 0.3 removes this old name of it.
             */
            demanded_iops?: number;
            /**
             * @deprecated
             * @description Use `queued_ns`. Version 0.3 removes this old name of it.
             */
            waits_ns?: {
                [key: string]: number;
            };
            /**
             * Format: int64
             * @deprecated
             * @description Use `device_baseline_latency_ns`. Version 0.3 removes this old name of it.
             */
            device_own_latency_ns?: number | null;
        };
        /** @description Entry of `GET /1.0/qos/flows`: limits and delivered rates of a disk. */
        QosFlowStatus: {
            /** @description Name of the disk. */
            disk: components["schemas"]["Name"];
            /** @description Store that contains the disk. */
            store: components["schemas"]["Name"];
            /**
             * @description Holder of the limits: `disk/NAME`, or `qos_policy/NAME` for an aggregated policy, whose
             *     disks share them.
             */
            holder: string;
            /** @description Limits in effect for the holder. */
            limits: components["schemas"]["DiskQos"];
            /**
             * Format: int32
             * @description Requests queued in the scheduler.
             */
            queued: number;
            /**
             * Format: int32
             * @description Requests in flight at the device.
             */
            in_flight: number;
            /**
             * @description True if no worker with disks of the store responds: requests and rates are the last known
             *     ones.
             */
            stale?: boolean;
            /** @description Rates of the last 5 s. */
            last_5_s: components["schemas"]["QosDelivery"];
            /** @description Rates of the last 5 min. */
            last_5_min: components["schemas"]["QosDelivery"];
            /**
             * Format: int32
             * @deprecated
             * @description Use `queued`. Version 0.3 removes this old name of it.
             */
            waiting?: number;
        };
        /**
         * @description Factor that limits a disk's throughput.
         * @enum {string}
         */
        QosLimitingFactor: "store-full" | "own-maximum" | "own-bandwidth" | "shared-policy" | "store-cap" | "others-minimums" | "device-saturated" | "device-slow" | "flushes" | "metadata" | "discards" | "unmeasured" | "worker" | "queue-depth" | "client-idle" | "device";
        /**
         * @description `[[qos_policy]]`: limits for several disks. Operations are normalised: a request counts as one
         *     operation for each started `normalization_bytes` of its store.
         */
        QosPolicyConfig: {
            /** @description Name of the QoS policy, unique among QoS policies. It cannot be changed. */
            name: components["schemas"]["Name"];
            /**
             * @description Scope of the limits: `dedicated` (each disk of the policy has them for itself) or `aggregated` (all disks of the policy in one store share them).
             * @default dedicated
             */
            kind?: components["schemas"]["QosPolicyKind"];
            /**
             * @description True if the policy exists on all nodes of the cluster with the same limits, so that a change on one node applies to all. Disks of an aggregated policy in a shared store then share the limits across nodes. No effect on a host without cluster.
             * @default false
             */
            shared?: boolean;
            /**
             * Format: int32
             * @description Guaranteed minimum in normalised IOPS (operations of `normalization_bytes` of the store, 8 KiB by default), in effect while the disk has requests; none if absent.
             */
            min_iops?: number | null;
            /**
             * Format: int32
             * @description Maximum in normalised IOPS (operations of `normalization_bytes` of the store, 8 KiB by default); no limit if absent. In each period of t seconds, the store gets at most `max_iops` × (t + c) operations and one more request, where the tolerance c is 0.02 s, or 0.08 s with `min_iops`. With `burst_iops`, the operations of the burst credit are added.
             */
            max_iops?: number | null;
            /** @description Maximum in bytes per second; no limit if absent. In each period of t seconds, the store gets at most `max_bytes_per_s` × (t + c) bytes and one more request, where the tolerance c is 0.02 s, or 0.08 s with `min_iops`. */
            max_bytes_per_s?: null | number | string;
            /**
             * Format: int32
             * @description Weight in the distribution of capacity beyond the minimums, relative to the weights of other disks.
             * @default 100
             */
            weight?: number;
            /**
             * Format: int32
             * @description Maximum in normalised IOPS (operations of `normalization_bytes` of the store, 8 KiB by default) while the disk has burst credit, higher than `max_iops`; no bursts if absent. Requires `max_iops` and `burst_s`.
             */
            burst_iops?: number | null;
            /**
             * Format: int32
             * @description Longest time in seconds for which a disk with full credit can use `burst_iops`: the credit is at most (`burst_iops` − `max_iops`) × `burst_s` operations. The disk collects credit while it uses less than `max_iops`. Requires `burst_iops`.
             */
            burst_s?: number | null;
        };
        /** @description Merge patch (RFC 7386) of `qos_policy`: keys that are absent stay as they are, null removes a key. */
        QosPolicyConfigPatch: {
            /** @description Name of the QoS policy, unique among QoS policies. It cannot be changed. */
            name?: components["schemas"]["Name"];
            /** @description Scope of the limits: `dedicated` (each disk of the policy has them for itself) or `aggregated` (all disks of the policy in one store share them). */
            kind?: null | components["schemas"]["QosPolicyKind"];
            /** @description True if the policy exists on all nodes of the cluster with the same limits, so that a change on one node applies to all. Disks of an aggregated policy in a shared store then share the limits across nodes. No effect on a host without cluster. */
            shared?: boolean | null;
            /**
             * Format: int32
             * @description Guaranteed minimum in normalised IOPS (operations of `normalization_bytes` of the store, 8 KiB by default), in effect while the disk has requests; none if absent.
             */
            min_iops?: number | null;
            /**
             * Format: int32
             * @description Maximum in normalised IOPS (operations of `normalization_bytes` of the store, 8 KiB by default); no limit if absent. In each period of t seconds, the store gets at most `max_iops` × (t + c) operations and one more request, where the tolerance c is 0.02 s, or 0.08 s with `min_iops`. With `burst_iops`, the operations of the burst credit are added.
             */
            max_iops?: number | null;
            /** @description Maximum in bytes per second; no limit if absent. In each period of t seconds, the store gets at most `max_bytes_per_s` × (t + c) bytes and one more request, where the tolerance c is 0.02 s, or 0.08 s with `min_iops`. */
            max_bytes_per_s?: null | number | string;
            /**
             * Format: int32
             * @description Weight in the distribution of capacity beyond the minimums, relative to the weights of other disks.
             */
            weight?: number | null;
            /**
             * Format: int32
             * @description Maximum in normalised IOPS (operations of `normalization_bytes` of the store, 8 KiB by default) while the disk has burst credit, higher than `max_iops`; no bursts if absent. Requires `max_iops` and `burst_s`.
             */
            burst_iops?: number | null;
            /**
             * Format: int32
             * @description Longest time in seconds for which a disk with full credit can use `burst_iops`: the credit is at most (`burst_iops` − `max_iops`) × `burst_s` operations. The disk collects credit while it uses less than `max_iops`. Requires `burst_iops`.
             */
            burst_s?: number | null;
        };
        /**
         * @description Scope of a policy's limits.
         * @enum {string}
         */
        QosPolicyKind: "dedicated" | "aggregated";
        /** @description Part of a policy's limits granted to a host, for a policy shared by disks of several nodes. */
        QosPolicyPart: {
            /** @description Store of the disks concerned. */
            store: components["schemas"]["Name"];
            /**
             * Format: int64
             * @description Guaranteed minimum of these disks together, in normalised operations per second.
             */
            min_iops: number;
            max?: null | components["schemas"]["ClusterCap"];
        };
        /** @description Proposed settings of a QoS policy. */
        QosPolicyProposal: {
            /** @description Name of the policy. */
            name: components["schemas"]["Name"];
            kind?: null | components["schemas"]["QosPolicyKind"];
            /** @description Complete limits of the policy. */
            limits?: components["schemas"]["DiskQos"];
        };
        /** @description Observed state of a QoS policy. */
        QosPolicyStatus: {
            /** @description Desired state of the policy. */
            config: components["schemas"]["QosPolicyConfig"];
            /** @description Disks with the policy, by name. */
            disks: components["schemas"]["Name"][];
            /**
             * Format: int64
             * @description Sum of the minimums reserved for the policy on all stores, in normalised operations per
             *     second.
             */
            reserved_iops: number;
            /**
             * Format: int64
             * @description Delivered rate of the policy's disks on this host in the last 5 s, in normalised operations
             *     per second.
             */
            delivered_iops: number;
            /** @description This host's parts of the limits by store; empty unless disks of several nodes share them. */
            parts?: components["schemas"]["QosPolicyPart"][];
            /**
             * Format: int64
             * @deprecated
             * @description Use `reserved_iops`. Version 0.3 removes this old name of it.
             */
            promised_iops?: number;
        };
        /** @description Proposed change of desired state. */
        QosProposal: {
            /** @description New disk, or a disk with other limits or in another store. */
            disk: components["schemas"]["DiskProposal"];
        } | {
            /** @description New QoS policy, or a policy with other limits. */
            qos_policy: components["schemas"]["QosPolicyProposal"];
        } | {
            /** @description Existing store with another capacity. */
            store: components["schemas"]["StoreProposal"];
        } | {
            /** @description Removal of the disk with this name. */
            without_disk: components["schemas"]["Name"];
        };
        /** @description Share of time by a limiting factor of a disk. */
        QosTimeShare: {
            /** @description Factor that limited the disk. */
            factor: components["schemas"]["QosLimitingFactor"];
            /**
             * Format: int32
             * @description Share of the window's time, in parts per million.
             */
            share_ppm: number;
        };
        /** @description Queue and the worker that owns it. */
        QueueStatus: {
            /**
             * @description Id, such as `NIC/rx/0` or `NIC/tx/0`, as seen by the guest (as in Hyper-V and Linux): `rx`
             *     carries frames to the guest.
             */
            id: string;
            /** @description NIC, uplink or switch (for its host NIC) that the queue belongs to. */
            port: string;
            /**
             * Format: int32
             * @description Worker that owns the queue.
             */
            worker: number;
            /**
             * Format: int64
             * @description Frames carried since the queue's creation.
             */
            frames: number;
            /**
             * Format: int64
             * @description Bytes carried since the queue's creation.
             */
            bytes: number;
            /**
             * Format: int64
             * @description Frames lost because the receiving side had no free buffer.
             */
            full: number;
            /**
             * Format: int64
             * @description Number of moves to another worker.
             */
            moves: number;
            /**
             * Format: int32
             * @deprecated
             * @description Use `worker`. Version 0.3 removes this old name of it.
             */
            processor?: number;
        };
        /**
         * @description Severity of an event.
         * @enum {string}
         */
        Severity: "info" | "warning" | "error";
        /**
         * @description Body of `POST /1.0/disks/{name}/snapshot`: the current content remains in the disk's file, and
         *     subsequent writes go to a new differencing file.
         */
        SnapshotDiskRequest: {
            /** @description New file, relative to the store's path. It must not exist. */
            file: components["schemas"]["StoreFile"];
        };
        /**
         * @description Role of the daemon on a vhost-user socket.
         * @enum {string}
         */
        SocketMode: "server" | "client";
        /** @description Switch of a NIC on the source node. */
        SourceSwitch: {
            /** @description Name of the switch. */
            name: components["schemas"]["Name"];
            /** @description Kind of the switch. */
            kind: components["schemas"]["SwitchKind"];
        };
        /** @description SR-IOV network adapter (physical function), whether or not it is configured. */
        SriovAdapter: {
            /** @description PCI address of the physical function. */
            address: string;
            /** @description Name of the network device. */
            device?: string | null;
            /** @description Network namespace of the device; absent if it is that of the daemon. */
            netns?: string | null;
            pf?: null | components["schemas"]["Name"];
            /** @description Driver of the physical function. */
            driver?: string | null;
            /** @description Availability of virtual functions for VMs. */
            support: components["schemas"]["SriovSupport"];
            /** @description Action to make virtual functions available. */
            remedy?: string | null;
            /**
             * Format: int32
             * @description Largest number of virtual functions.
             */
            vfs_supported: number;
            /**
             * Format: int32
             * @description Current number of virtual functions.
             */
            vfs_enabled: number;
            /**
             * Format: int32
             * @description Number of virtual functions in use.
             */
            vfs_in_use: number;
            /**
             * Format: int32
             * @description Number of the adapter's IOMMU group.
             */
            iommu_group?: number | null;
            /**
             * Format: int32
             * @description NUMA node of the adapter.
             */
            numa_node?: number | null;
            /** @description Virtual functions that currently exist. */
            vfs: components["schemas"]["VfStatus"][];
        };
        /**
         * @description Availability of an adapter's virtual functions for VMs; the first obstacle if not available. The
         *     names are those of Hyper-V's `SriovSupport`.
         * @enum {string}
         */
        SriovSupport: "Supported" | "MissingPfDriver" | "NoVfBarSpace" | "NoBusResources" | "NoIoMmuSupport" | "MissingAcs";
        /** @description Ability of the daemon to store changes in its state directory. */
        StateStoreStatus: {
            /**
             * @description True if the last change was stored. While it is false, changes of the configuration are
             *     refused, VMs are not started, and new events are kept in memory only.
             */
            writable: boolean;
            /** @description Why the state directory cannot be written; absent if it can be. */
            reason?: string | null;
        };
        /** @description NIC with a dedicated receive queue. */
        SteeredNic: {
            /** @description Name of the NIC. */
            nic: components["schemas"]["Name"];
            /** @description Destination address of the frames. */
            mac: string;
            /**
             * Format: int32
             * @description VLAN of the frames; absent if the device's rule does not match the VLAN.
             */
            vlan?: number | null;
            /**
             * Format: int32
             * @description Receive queue, counted from 0.
             */
            queue: number;
        };
        /**
         * @description Component that distributes received frames to the queues of NICs.
         * @enum {string}
         */
        SteeringMode: "hardware" | "software";
        /** @description Classification of frames received by an uplink, by destination address and VLAN. */
        SteeringStatus: {
            /** @description Component that classifies received frames. */
            mode: components["schemas"]["SteeringMode"];
            /**
             * Format: int32
             * @description Number of receive queues of the uplink.
             */
            queues: number;
            /** @description True if frames of other NICs do not arrive on queues dedicated to a NIC. */
            exclusive: boolean;
            /** @description Reason why the device classifies for no NIC, or not for all. */
            reason?: string | null;
            /** @description NICs with a dedicated receive queue, by queue. */
            nics?: components["schemas"]["SteeredNic"][];
        };
        /**
         * @description Method of requesting a guest to shut down.
         * @enum {string}
         */
        StopBy: "auto" | "power-button" | "agent";
        /**
         * @description Body of `POST /1.0/vms/{name}/stop`: requests the VM's guest to shut down. The body may be
         *     absent.
         */
        StopVmRequest: {
            /**
             * Format: int64
             * @description Time for the guest to shut down in seconds, 1 to 3600.
             * @default 60
             */
            seconds?: number;
            /**
             * @description True to end the VM after that time, like a power loss.
             * @default false
             */
            force?: boolean;
            /** @default auto */
            by?: components["schemas"]["StopBy"];
        };
        /**
         * @description State of a store or disk.
         * @enum {string}
         */
        StorageState: "ready" | "working" | "failed" | "stalled" | "full" | "faulted" | "away";
        /** @description Value of `capacity_iops` of a store: a number, or the word `measure`. */
        StoreCapability: number | components["schemas"]["MeasureWord"];
        /** @description `[[store]]`: a backing store of disks, with one request queue for all of them. */
        StoreConfig: {
            /** @description Name of the store, unique among stores. It cannot be changed. */
            name: components["schemas"]["Name"];
            /** @description Absolute path of a directory that contains disks as files, or of a block device that one disk uses as a whole. A change replaces the resource. */
            path: string;
            /** @description Capacity in normalised IOPS, or `measure` for the result of the last `suimon store measure`. The sum of the minimums of disks is limited to 90 % of it. If absent or not yet measured, the capacity is unknown, and minimums are accepted only with `--force`. */
            capacity_iops?: null | number | "measure";
            /**
             * @description Size of one normalised operation in bytes, a power of two. A read or write counts as its size divided by this size, rounded up; its offset does not matter. A change replaces the resource.
             * @default 8192
             */
            normalization_bytes?: number | string;
            /**
             * Format: int32
             * @description Largest number of requests in flight at the device. A change replaces the resource.
             * @default 256
             */
            depth_max?: number;
            /**
             * @description True if other nodes use the same directory as a store of this name through a shared file system. Disks in it are handed over instead of copied when their VM migrates, after a check that both nodes see the same directory. The file system must support locks between nodes. On a node of a cluster, the disks in the store are limited to what the cluster grants as soon as the value is true.
             * @default false
             */
            shared?: boolean;
            /**
             * Format: int32
             * @description Limit of all disks of this host in the store, in normalised IOPS (see `normalization_bytes`), while the host has no contact with the cluster. The limit is in effect after 30 s without contact, if it is above the reservation of the host (the sum of its minimums plus 64 IOPS). Otherwise, and if absent, the reservation is the limit. The cluster keeps this rate free for the host. If 90 % of the capacity does not suffice for this rate and the rates reserved for other hosts, the key has no effect.
             */
            fallback_iops?: number | null;
            /**
             * Format: int32
             * @description Used space in percent of the size of the store above which the store is reported as nearly full (event 6152); 90 if absent.
             */
            full_warning_percent?: number;
            /**
             * @deprecated
             * @description Use `capacity_iops`. Version 0.3 removes this old name of it.
             */
            capability_iops?: null | number | "measure";
        };
        /** @description Merge patch (RFC 7386) of `store`: keys that are absent stay as they are, null removes a key. */
        StoreConfigPatch: {
            /** @description Name of the store, unique among stores. It cannot be changed. */
            name?: components["schemas"]["Name"];
            /** @description Absolute path of a directory that contains disks as files, or of a block device that one disk uses as a whole. A change replaces the resource. */
            path?: string;
            /** @description Capacity in normalised IOPS, or `measure` for the result of the last `suimon store measure`. The sum of the minimums of disks is limited to 90 % of it. If absent or not yet measured, the capacity is unknown, and minimums are accepted only with `--force`. */
            capacity_iops?: null | number | "measure";
            /** @description Size of one normalised operation in bytes, a power of two. A read or write counts as its size divided by this size, rounded up; its offset does not matter. A change replaces the resource. */
            normalization_bytes?: null | number | string;
            /**
             * Format: int32
             * @description Largest number of requests in flight at the device. A change replaces the resource.
             */
            depth_max?: number | null;
            /** @description True if other nodes use the same directory as a store of this name through a shared file system. Disks in it are handed over instead of copied when their VM migrates, after a check that both nodes see the same directory. The file system must support locks between nodes. On a node of a cluster, the disks in the store are limited to what the cluster grants as soon as the value is true. */
            shared?: boolean | null;
            /**
             * Format: int32
             * @description Limit of all disks of this host in the store, in normalised IOPS (see `normalization_bytes`), while the host has no contact with the cluster. The limit is in effect after 30 s without contact, if it is above the reservation of the host (the sum of its minimums plus 64 IOPS). Otherwise, and if absent, the reservation is the limit. The cluster keeps this rate free for the host. If 90 % of the capacity does not suffice for this rate and the rates reserved for other hosts, the key has no effect.
             */
            fallback_iops?: number | null;
            /**
             * Format: int32
             * @description Used space in percent of the size of the store above which the store is reported as nearly full (event 6152); 90 if absent.
             */
            full_warning_percent?: number | null;
            /**
             * @deprecated
             * @description Use `capacity_iops`. Version 0.3 removes this old name of it.
             */
            capability_iops?: null | number | "measure";
        };
        /** @description Estimate of a store's capacity from a time with queued requests. */
        StoreEstimate: {
            /**
             * Format: int64
             * @description Rate delivered under the load of that time, in normalised operations per second.
             */
            iops: number;
            /**
             * Format: int64
             * @description Age of the estimate in ms.
             */
            age_ms: number;
        };
        /** @description A file by its path below its store's. */
        StoreFile: string;
        /** @description Result of a measurement of a store. */
        StoreMeasurement: {
            /**
             * Format: int64
             * @description Capacity in normalised operations per second: the lowest of all patterns.
             */
            iops: number;
            /**
             * Format: int64
             * @description End of the measurement in milliseconds since 1970-01-01 UTC.
             */
            measured_unix_ms: number;
            /**
             * Format: int64
             * @description Measuring time of each pattern in seconds.
             */
            seconds: number;
            /** @description Results by pattern. A block device is measured with reads only. */
            patterns: components["schemas"]["StorePatternFigure"][];
            /**
             * Format: int64
             * @description Size of the range accessed, in bytes.
             */
            file_bytes: number;
            /** @description True if requests bypassed the host's page cache. */
            direct: boolean;
            /**
             * Format: int64
             * @description Rate delivered to the store's disks in the last 5 s of the measurement, in normalised
             *     operations per second.
             */
            others_iops: number;
        };
        /**
         * @description Access pattern of a measurement.
         * @enum {string}
         */
        StorePattern: "random-read" | "random-write" | "random-mixed";
        /** @description Result of a measurement with one pattern. */
        StorePatternFigure: {
            /** @description Access pattern of the measurement. */
            pattern: components["schemas"]["StorePattern"];
            /**
             * Format: int64
             * @description Operations per second, each of the store's `normalization_bytes`.
             */
            iops: number;
            /**
             * Format: int32
             * @description Queue depth at the device, as selected by Storage QoS.
             */
            depth: number;
            /**
             * Format: int64
             * @description Median (50th percentile) of the latency in ns.
             */
            latency_ns_p50: number;
            /**
             * Format: int64
             * @description 99th percentile of the latency in ns.
             */
            latency_ns_p99: number;
        };
        /** @description Reservations of a store, actual or proposed, with the calculation. */
        StorePromises: {
            /** @description Name of the store. */
            store: components["schemas"]["Name"];
            /** @description Number of minimums; one of an aggregated policy counts once. */
            minimums: number;
            /**
             * Format: int64
             * @description Sum of the minimums in normalised operations per second.
             */
            minimums_iops: number;
            /**
             * Format: int64
             * @description Capacity of the store in normalised operations per second; absent if unknown.
             */
            capacity_iops?: number | null;
            /**
             * Format: int64
             * @description Part of the capacity available for reservations, in normalised operations per second.
             */
            reservable_iops: number;
            /** @description True if the sum does not exceed `reservable_iops`. */
            fits: boolean;
            /** @description The calculation as text, with the action to take if the minimums do not fit. */
            text: string;
            /**
             * Format: int64
             * @deprecated
             * @description Use `capacity_iops`. Version 0.3 removes this old name of it.
             */
            capability_iops?: number | null;
            /**
             * Format: int64
             * @deprecated
             * @description Use `reservable_iops`. Version 0.3 removes this old name of it.
             */
            promisable_iops?: number;
        };
        /** @description Proposed settings of a store. */
        StoreProposal: {
            /** @description Name of an existing store. */
            name: components["schemas"]["Name"];
            /**
             * Format: int64
             * @description Capacity in normalised operations per second, 1 to 1 000 000 000.
             */
            capacity_iops: number;
            /**
             * Format: int64
             * @deprecated
             * @description Use `capacity_iops`. Version 0.3 removes this old name of it.
             */
            capability_iops?: number;
        };
        /** @description Observed state of a store. */
        StoreStatus: {
            /** @description Desired state of the store. */
            config: components["schemas"]["StoreConfig"];
            /** @description Current state of the store. */
            state: components["schemas"]["StorageState"];
            /** @description Cause of a state other than `ready`. */
            reason?: string | null;
            /**
             * Format: int64
             * @description Size of the file system or device in bytes; absent while unknown.
             */
            total_bytes?: number | null;
            /**
             * Format: int64
             * @description Free bytes of the file system; absent for a block device.
             */
            free_bytes?: number | null;
            /** @description True if the used space exceeds `full_warning_percent`. */
            nearly_full?: boolean;
            /**
             * Format: int64
             * @description Sum of the sizes of the store's disks as seen by guests, in bytes.
             */
            virtual_bytes?: number;
            /**
             * Format: int64
             * @description Sum of the bytes allocated by the files of the store's disks, without parents.
             */
            allocated_bytes?: number;
            /**
             * Format: int64
             * @description `virtual_bytes` in percent of `total_bytes`, rounded up; absent while unknown. Above 100,
             *     writes to the disks can exhaust the store.
             */
            overcommit_percent?: number | null;
            /**
             * Format: int64
             * @description Capacity in normalised operations per second that the daemon assumes; absent while unknown.
             */
            capacity_iops?: number | null;
            capacity_source?: null | components["schemas"]["CapabilitySource"];
            measured?: null | components["schemas"]["StoreMeasurement"];
            estimate?: null | components["schemas"]["StoreEstimate"];
            /**
             * Format: int64
             * @description Sum of all minimums on the store, in normalised operations per second.
             */
            reserved_iops: number;
            /**
             * Format: int64
             * @description `reserved_iops` in percent of the capacity, rounded up; absent while the capacity is
             *     unknown.
             */
            reserved_percent?: number | null;
            /** @description Number of disks in the store. */
            disks: number;
            /**
             * Format: int64
             * @description Delivered rate during the last 5 s, in normalised operations per second.
             */
            delivered_iops: number;
            /**
             * Format: int64
             * @description Current service time of a request at the device in ns; absent without recent requests.
             */
            latency_ns?: number | null;
            /**
             * Format: int32
             * @description Requests in flight at the device.
             */
            depth: number;
            /**
             * Format: int32
             * @description Current limit of requests in flight at the device, at most `depth_max`.
             */
            depth_allowed: number;
            /**
             * @description True if no worker with disks of the store responds: latency, depth, estimate and delivered
             *     rate are the last known ones.
             */
            stale?: boolean;
            /**
             * Format: int64
             * @deprecated
             * @description Use `capacity_iops`. Version 0.3 removes this old name of it.
             */
            capability_iops?: number | null;
            /**
             * @deprecated
             * @description Use `capacity_source`. Version 0.3 removes this old name of it.
             */
            capability_source?: null | components["schemas"]["CapabilitySource"];
            /**
             * Format: int64
             * @deprecated
             * @description Use `reserved_iops`. Version 0.3 removes this old name of it.
             */
            promised_iops?: number;
            /**
             * Format: int64
             * @deprecated
             * @description Use `reserved_percent`. Version 0.3 removes this old name of it.
             */
            promised_percent?: number | null;
        };
        /**
         * @description File that the source node created in a shared store and keeps open. A destination that finds the
         *     file in its store of the same name accesses the same directory.
         */
        StoreToken: {
            /** @description Name of the store. */
            store: components["schemas"]["Name"];
            /** @description Random part of the file's name, 32 hexadecimal digits. */
            token: string;
        };
        /** @description `[[switch]]`: a virtual switch. */
        SwitchConfig: {
            /** @description Name of the switch, unique among switches. It cannot be changed. */
            name: components["schemas"]["Name"];
            /** @description Connectivity: `private` (NICs only), `internal` (NICs and the host) or `external` (NICs and the physical network). */
            kind: components["schemas"]["SwitchKind"];
            /** @description Uplink or team that connects the switch to the physical network. Required if `kind` is `external`, otherwise not permitted. After a change, NICs reach the network of the new uplink; a team in LACP mode forwards no frames until its links have negotiated. */
            uplink?: null | components["schemas"]["Name"];
            /** @description Kind `internal`: name of the TAP device by which the host is connected; the name of the switch if absent. */
            host_device?: string | null;
            /** @description Kind `internal`: offloads of the host NIC. */
            host_offload?: components["schemas"]["OffloadConfig"];
            /**
             * Format: int32
             * @description Time in seconds without frames from a learned MAC address after which the address is removed from the forwarding table.
             * @default 300
             */
            ageing_s?: number;
            /**
             * @description True if NICs of the switch may use virtual functions (VFs) of the adapter of the uplink, in addition to their path through the switch. Requires a `[[pf]]` for the device of the uplink.
             * @default false
             */
            iov?: boolean;
        };
        /** @description Merge patch (RFC 7386) of `switch`: keys that are absent stay as they are, null removes a key. */
        SwitchConfigPatch: {
            /** @description Name of the switch, unique among switches. It cannot be changed. */
            name?: components["schemas"]["Name"];
            /** @description Connectivity: `private` (NICs only), `internal` (NICs and the host) or `external` (NICs and the physical network). */
            kind?: components["schemas"]["SwitchKind"];
            /** @description Uplink or team that connects the switch to the physical network. Required if `kind` is `external`, otherwise not permitted. After a change, NICs reach the network of the new uplink; a team in LACP mode forwards no frames until its links have negotiated. */
            uplink?: null | components["schemas"]["Name"];
            /** @description Kind `internal`: name of the TAP device by which the host is connected; the name of the switch if absent. */
            host_device?: string | null;
            /** @description Kind `internal`: offloads of the host NIC. */
            host_offload?: null | components["schemas"]["OffloadConfigPatch"];
            /**
             * Format: int32
             * @description Time in seconds without frames from a learned MAC address after which the address is removed from the forwarding table.
             */
            ageing_s?: number | null;
            /** @description True if NICs of the switch may use virtual functions (VFs) of the adapter of the uplink, in addition to their path through the switch. Requires a `[[pf]]` for the device of the uplink. */
            iov?: boolean | null;
        };
        /**
         * @description Connectivity of a switch.
         * @enum {string}
         */
        SwitchKind: "private" | "internal" | "external";
        /** @description Observed state of a switch. */
        SwitchStatus: {
            /** @description Desired state of the switch. */
            config: components["schemas"]["SwitchConfig"];
            /** @description Health, with the reason if it is not `up`. */
            condition: components["schemas"]["Condition"];
            /** @description Names of the connected NICs. */
            nics: components["schemas"]["Name"][];
            host_nic?: null | components["schemas"]["PortCounters"];
            /** @description Offloads of the host NIC of an internal switch; empty for other switches. */
            host_nic_offloads?: components["schemas"]["OffloadStatus"][];
            /** @description Number of MAC addresses in the forwarding table. */
            addresses: number;
        };
        /**
         * @description Selection of the member that transmits a frame.
         * @enum {string}
         */
        TeamAlgorithm: "hyper-v-port" | "transport-ports" | "ip-addresses" | "mac-addresses" | "dynamic";
        /** @description `[[team]]`: a group of uplinks used as one. */
        TeamConfig: {
            /** @description Name of the team, unique among teams and uplinks. A switch may name a team or an uplink as its `uplink`. It cannot be changed. */
            name: components["schemas"]["Name"];
            /** @description Member uplinks; an uplink belongs to at most one team. Of members that are equally suitable, for example as primary, the team selects the one listed first. */
            members: components["schemas"]["Name"][];
            /** @description Configuration of the physical switch: `static` (static link aggregation group), `lacp` (link aggregation group negotiated by LACP) or `switch-independent` (none required). After a change to `lacp`, the team forwards no frames until its links have negotiated. */
            mode: components["schemas"]["TeamMode"];
            /**
             * @description Selection of the member that transmits a frame: `hyper-v-port` (by source NIC), `transport-ports` (by IP addresses, protocol and ports), `ip-addresses`, `mac-addresses` (with the VLAN), or `dynamic` (as `transport-ports`, with flows moved between members by load).
             * @default dynamic
             */
            algorithm?: components["schemas"]["TeamAlgorithm"];
            /** @description Mode `lacp`: interval at which the partner is requested to send LACPDUs, 30 s (`slow`) or 1 s (`fast`); `slow` if absent. The state of the partner expires after three intervals. */
            lacp_timer?: null | components["schemas"]["LacpTimer"];
            /** @description Mode `lacp`: true if LACPDUs are sent even to a passive partner; true if absent. At least one end must be active. */
            lacp_active?: boolean | null;
            /**
             * Format: int32
             * @description Mode `lacp`: system priority of this host; 32 768 if absent. The end with the lower value selects the links in use.
             */
            lacp_system_priority?: number | null;
            /**
             * Format: int32
             * @description Smallest number of usable members with which the team is up, at most the number of members without the standby.
             * @default 1
             */
            min_links?: number;
            /** @description Mode `switch-independent`: member that is used only while another one is unusable; none if absent. */
            standby?: null | components["schemas"]["Name"];
            /** @description Mode `switch-independent`: preferred member for receiving broadcasts, multicasts, and frames to NICs to which the algorithm assigns no member; selected by the team if absent. */
            primary?: null | components["schemas"]["Name"];
            /** @description Assignment of the queues of the members to workers. */
            vmq?: components["schemas"]["VmqConfig"];
        };
        /** @description Merge patch (RFC 7386) of `team`: keys that are absent stay as they are, null removes a key. */
        TeamConfigPatch: {
            /** @description Name of the team, unique among teams and uplinks. A switch may name a team or an uplink as its `uplink`. It cannot be changed. */
            name?: components["schemas"]["Name"];
            /** @description Member uplinks; an uplink belongs to at most one team. Of members that are equally suitable, for example as primary, the team selects the one listed first. */
            members?: components["schemas"]["Name"][];
            /** @description Configuration of the physical switch: `static` (static link aggregation group), `lacp` (link aggregation group negotiated by LACP) or `switch-independent` (none required). After a change to `lacp`, the team forwards no frames until its links have negotiated. */
            mode?: components["schemas"]["TeamMode"];
            /** @description Selection of the member that transmits a frame: `hyper-v-port` (by source NIC), `transport-ports` (by IP addresses, protocol and ports), `ip-addresses`, `mac-addresses` (with the VLAN), or `dynamic` (as `transport-ports`, with flows moved between members by load). */
            algorithm?: null | components["schemas"]["TeamAlgorithm"];
            /** @description Mode `lacp`: interval at which the partner is requested to send LACPDUs, 30 s (`slow`) or 1 s (`fast`); `slow` if absent. The state of the partner expires after three intervals. */
            lacp_timer?: null | components["schemas"]["LacpTimer"];
            /** @description Mode `lacp`: true if LACPDUs are sent even to a passive partner; true if absent. At least one end must be active. */
            lacp_active?: boolean | null;
            /**
             * Format: int32
             * @description Mode `lacp`: system priority of this host; 32 768 if absent. The end with the lower value selects the links in use.
             */
            lacp_system_priority?: number | null;
            /**
             * Format: int32
             * @description Smallest number of usable members with which the team is up, at most the number of members without the standby.
             */
            min_links?: number | null;
            /** @description Mode `switch-independent`: member that is used only while another one is unusable; none if absent. */
            standby?: null | components["schemas"]["Name"];
            /** @description Mode `switch-independent`: preferred member for receiving broadcasts, multicasts, and frames to NICs to which the algorithm assigns no member; selected by the team if absent. */
            primary?: null | components["schemas"]["Name"];
            /** @description Assignment of the queues of the members to workers. */
            vmq?: null | components["schemas"]["VmqConfigPatch"];
        };
        /**
         * @description State of a member of a team.
         * @enum {string}
         */
        TeamMemberState: "active" | "waiting" | "failed";
        /** @description Observed state of a team's member. */
        TeamMemberStatus: {
            /** @description Name of the member uplink. */
            uplink: components["schemas"]["Name"];
            /** @description Current state of the member. */
            state: components["schemas"]["TeamMemberState"];
            /** @description Reason for the member's state. */
            reason: string;
            /** @description True if the link is up. */
            link_up: boolean;
            /**
             * Format: int32
             * @description Speed in Mbit/s; absent if the device does not report it. The slowest known speed of the
             *     team is then assumed.
             */
            speed_mbps?: number | null;
            /** @description True if the member is the receiving (primary) one, in modes with one receiving member. */
            primary: boolean;
            /** @description True if the member is the standby. */
            standby: boolean;
            /**
             * Format: int64
             * @description Received bits in the last second.
             */
            rx_bps: number;
            /**
             * Format: int64
             * @description Transmitted bits in the last second.
             */
            tx_bps: number;
            /**
             * Format: int32
             * @description Share of the team's received bytes in the last second, in parts per million.
             */
            rx_share_ppm: number;
            /**
             * Format: int32
             * @description Share of the team's transmitted bytes in the last second, in parts per million.
             */
            tx_share_ppm: number;
            /**
             * Format: int32
             * @description Share of the team's flows that are assigned to the member by hash or load, in parts per
             *     million.
             */
            flows_share_ppm: number;
            /**
             * Format: int32
             * @description Number of NICs assigned to the member; 0 for algorithms that do not assign NICs.
             */
            nics: number;
            /** @description Counters since the device was opened. */
            counters: components["schemas"]["PortCounters"];
            lacp?: null | components["schemas"]["LacpMemberStatus"];
        };
        /**
         * @description Configuration of the physical switch at the other end of a team.
         * @enum {string}
         */
        TeamMode: "static" | "lacp" | "switch-independent";
        /** @description Observed state of a team. */
        TeamStatus: {
            /** @description Desired state of the team. */
            config: components["schemas"]["TeamConfig"];
            switch?: null | components["schemas"]["Name"];
            /**
             * @description Health, with the reason if it is not `up`. `down` with fewer usable members than
             *     `min_links`.
             */
            condition: components["schemas"]["Condition"];
            /** @description Counters of the team as one port of the switch. */
            counters: components["schemas"]["PortCounters"];
            /**
             * Format: int32
             * @description Largest IP packet in bytes currently in effect: the smallest MTU of the members.
             */
            mtu: number;
            /**
             * Format: int64
             * @description Sum of the active members' speeds in Mbit/s, without those of unknown speed.
             */
            speed_mbps: number;
            lacp_partner?: null | components["schemas"]["LacpPartnerStatus"];
            /** @description Members in the order of the configuration. */
            members: components["schemas"]["TeamMemberStatus"][];
        };
        /** @description Values of `suimon top` for a disk: counters since it was opened, and rates of the last 5 s. */
        TopDisk: {
            /** @description Name of the disk. */
            name: components["schemas"]["Name"];
            /** @description Store that contains the disk. */
            store: components["schemas"]["Name"];
            /** @description Current state of the disk. */
            state: components["schemas"]["StorageState"];
            /**
             * Format: int64
             * @description Number of completed reads.
             */
            reads: number;
            /**
             * Format: int64
             * @description Number of bytes of completed reads.
             */
            read_bytes: number;
            /**
             * Format: int64
             * @description Number of completed writes.
             */
            writes: number;
            /**
             * Format: int64
             * @description Number of bytes of completed writes.
             */
            written_bytes: number;
            /**
             * Format: int64
             * @description Completed flushes, discards and write-zeroes requests.
             */
            others: number;
            /**
             * Format: int64
             * @description Sum of the latencies of these requests in ns, from their detection to completion, including
             *     time queued for limits.
             */
            latency_ns: number;
            last_5_s?: null | components["schemas"]["QosDelivery"];
            /** @description True if the disk's worker does not respond: counters and rates are the last known ones. */
            stale?: boolean;
        };
        /** @description Values of `suimon top` for a NIC or uplink. */
        TopPort: {
            /** @description Name of the NIC or uplink. */
            name: components["schemas"]["Name"];
            switch?: null | components["schemas"]["Name"];
            /** @description Health of the port. */
            health: components["schemas"]["Health"];
            /**
             * Format: int64
             * @description Frames received from the port.
             */
            rx_frames: number;
            /**
             * Format: int64
             * @description Bytes received from the port.
             */
            rx_bytes: number;
            /**
             * Format: int64
             * @description Frames sent to the port.
             */
            tx_frames: number;
            /**
             * Format: int64
             * @description Bytes sent to the port.
             */
            tx_bytes: number;
            /**
             * Format: int64
             * @description Frames received from the port and dropped.
             */
            rx_dropped: number;
            /**
             * Format: int64
             * @description Frames for the port that were dropped.
             */
            tx_dropped: number;
        };
        /** @description Power values of `suimon top`. */
        TopPower: {
            /** @description Power plan; absent if none is configured. */
            plan?: string | null;
            /** @description Extent to which the CPU settings were in effect when last applied. */
            effect: components["schemas"]["PowerEffect"];
            /**
             * Format: int64
             * @description Energy of packages and memory in microjoules since the daemon first read their counters;
             *     absent if unknown.
             */
            energy_uj?: number | null;
            /**
             * Format: int64
             * @description Time of the reading, on the clock of `time_monotonic_ns`.
             */
            read_monotonic_ns?: number;
            /** @description Reason why energy is unknown. */
            unavailable_reason?: string | null;
            /**
             * @deprecated
             * @description Use `unavailable_reason`. Version 0.3 removes this old name of it.
             */
            lacking?: string | null;
        };
        /** @description Response of `GET /1.0/top`: a snapshot of all counters. Rates are differences of two snapshots. */
        TopSnapshot: {
            /**
             * Format: int64
             * @description Time of the snapshot in milliseconds since 1970-01-01 UTC.
             */
            time_unix_ms: number;
            /**
             * Format: int64
             * @description Time of the snapshot in ns on a monotonic clock, for the calculation of rates.
             */
            time_monotonic_ns: number;
            /** @description Counters of NICs, by name. */
            nics: components["schemas"]["TopPort"][];
            /** @description Counters of uplinks, by name. */
            uplinks: components["schemas"]["TopPort"][];
            /** @description State of teams, by name. */
            teams?: components["schemas"]["TopTeam"][];
            /** @description Counters of disks, by name. */
            disks?: components["schemas"]["TopDisk"][];
            /** @description State of workers, by number. */
            workers: components["schemas"]["ProcessorStatus"][];
            /** @description Power plan and energy of the host. */
            power?: components["schemas"]["TopPower"];
            /**
             * @deprecated
             * @description Use `workers`. Version 0.3 removes this old name of it.
             */
            processors?: components["schemas"]["ProcessorStatus"][];
        };
        /** @description Values of `suimon top` for a team. Its traffic is the sum of its members' traffic. */
        TopTeam: {
            /** @description Name of the team. */
            name: components["schemas"]["Name"];
            switch?: null | components["schemas"]["Name"];
            /** @description Health of the team. */
            health: components["schemas"]["Health"];
            /** @description Member uplinks in the order of the configuration. */
            members: components["schemas"]["Name"][];
        };
        /**
         * @description VLANs of a trunk port, as numbers and ranges in the order of the configuration, such as `[10,
         *     "20-29"]`. Validation rejects overlaps.
         */
        TrunkVlans: components["schemas"]["VlanRangeText"][];
        /** @description `[[uplink]]`: a network device as uplink of a switch or member of a team. */
        UplinkConfig: {
            /** @description Name of the uplink, unique among uplinks and teams. It cannot be changed. */
            name: components["schemas"]["Name"];
            /** @description Name of the network device of the host, such as `eth0`. A change replaces the resource. */
            device: string;
            /**
             * @description Access to the device: `af_packet` (packet socket), `af_xdp` (AF_XDP sockets, which bypass the network stack of the host) or `tap` (TAP device, created if it does not exist). A change replaces the resource.
             * @default af_packet
             */
            driver?: components["schemas"]["UplinkDriver"];
            /**
             * Format: int32
             * @description Number of queue pairs. With driver `af_xdp`, it must equal the number of receive queues of the device (`ethtool -l`). A change replaces the resource.
             * @default 1
             */
            queues?: number;
            /**
             * Format: int32
             * @description Largest IP packet in bytes; the MTU of the device if absent.
             */
            mtu?: number | null;
            /** @description Driver `af_xdp`: IP addresses of the host on the device. ARP and neighbour discovery for these addresses, and frames to the MAC address of the device, are passed to the host. If absent, all frames except link-local control protocols go to the switch. */
            host_addresses?: string[];
            /** @description Offloads between the switch and the device. */
            offload?: components["schemas"]["OffloadConfig"];
            /** @description Assignment of the queues of the uplink to workers. For a member of a team, `vmq` of the team applies. */
            vmq?: components["schemas"]["VmqConfig"];
        };
        /** @description Merge patch (RFC 7386) of `uplink`: keys that are absent stay as they are, null removes a key. */
        UplinkConfigPatch: {
            /** @description Name of the uplink, unique among uplinks and teams. It cannot be changed. */
            name?: components["schemas"]["Name"];
            /** @description Name of the network device of the host, such as `eth0`. A change replaces the resource. */
            device?: string;
            /** @description Access to the device: `af_packet` (packet socket), `af_xdp` (AF_XDP sockets, which bypass the network stack of the host) or `tap` (TAP device, created if it does not exist). A change replaces the resource. */
            driver?: null | components["schemas"]["UplinkDriver"];
            /**
             * Format: int32
             * @description Number of queue pairs. With driver `af_xdp`, it must equal the number of receive queues of the device (`ethtool -l`). A change replaces the resource.
             */
            queues?: number | null;
            /**
             * Format: int32
             * @description Largest IP packet in bytes; the MTU of the device if absent.
             */
            mtu?: number | null;
            /** @description Driver `af_xdp`: IP addresses of the host on the device. ARP and neighbour discovery for these addresses, and frames to the MAC address of the device, are passed to the host. If absent, all frames except link-local control protocols go to the switch. */
            host_addresses?: string[] | null;
            /** @description Offloads between the switch and the device. */
            offload?: null | components["schemas"]["OffloadConfigPatch"];
            /** @description Assignment of the queues of the uplink to workers. For a member of a team, `vmq` of the team applies. */
            vmq?: null | components["schemas"]["VmqConfigPatch"];
        };
        /**
         * @description Method of frame I/O on an uplink's device.
         * @enum {string}
         */
        UplinkDriver: "af_packet" | "af_xdp" | "tap";
        /** @description Observed state of an uplink. */
        UplinkStatus: {
            /** @description Desired state of the uplink. */
            config: components["schemas"]["UplinkConfig"];
            switch?: null | components["schemas"]["Name"];
            /** @description Health, with the reason if it is not `up`. */
            condition: components["schemas"]["Condition"];
            /** @description Counters of the port's frames and drops. */
            counters: components["schemas"]["PortCounters"];
            /**
             * Format: int32
             * @description Largest IP packet in bytes, as currently in effect.
             */
            mtu: number;
            /** @description MAC address of the device. */
            mac?: string | null;
            /** @description State of the port's offloads. */
            offloads?: components["schemas"]["OffloadStatus"][];
            /** @description Offload features of the device, as currently reported by the kernel. */
            device?: components["schemas"]["DeviceFeaturesStatus"];
            af_xdp?: null | components["schemas"]["XdpStatus"];
            steering?: null | components["schemas"]["SteeringStatus"];
        };
        /** @description `[[pf.vf]]`: settings of one virtual function. */
        VfConfig: {
            /**
             * Format: int32
             * @description Number of the VF, from 0 to `vfs` - 1.
             */
            index: number;
            /** @description MAC address of the VF; unchanged if absent. Its user can change it only if `trust` is true. */
            mac?: string | null;
            /**
             * Format: int32
             * @description VLAN of all frames of the VF; unchanged if absent. Its user sends and receives them untagged.
             */
            vlan?: number | null;
            /** @description True if the adapter drops frames that the VF sends from another MAC address; unchanged if absent. */
            spoof_check?: boolean | null;
            /** @description True if the user of the VF may change its MAC address and receive frames for other addresses; unchanged if absent. */
            trust?: boolean | null;
            /**
             * Format: int64
             * @description Guaranteed transmit rate in bits per second, a multiple of 1 000 000; unchanged if absent. Few adapters support it.
             */
            bandwidth_min_bps?: number | null;
            /**
             * Format: int64
             * @description Limit of the transmit rate in bits per second, a multiple of 1 000 000; unchanged if absent.
             */
            bandwidth_max_bps?: number | null;
            /** @description Link state that the VF sees: `auto` (that of the adapter), `enable` (always up) or `disable` (always down); unchanged if absent. */
            link_state?: null | components["schemas"]["VfLinkState"];
        };
        /**
         * @description Link state presented to a VF.
         * @enum {string}
         */
        VfLinkState: "auto" | "enable" | "disable";
        /** @description Observed state of a virtual function. */
        VfStatus: {
            /**
             * Format: int32
             * @description Number of the virtual function on its adapter.
             */
            index: number;
            /** @description PCI address of the virtual function. */
            address: string;
            /** @description Driver; `vfio-pci` for assignment to VMs. */
            driver?: string | null;
            /**
             * Format: int32
             * @description Number of the virtual function's IOMMU group.
             */
            iommu_group?: number | null;
            /** @description Network device; absent if there is none or it is not visible. */
            device?: string | null;
            /** @description Network namespace of the device; absent if it is that of the daemon. */
            netns?: string | null;
            /** @description User of the virtual function, as text; absent if unused. */
            used_by?: string | null;
            /** @description MAC address set by the adapter; absent if none was set. */
            mac?: string | null;
            /**
             * Format: int32
             * @description VLAN of the virtual function's frames.
             */
            vlan?: number | null;
            /**
             * @description True if the adapter drops frames sent with another source address. This and the following
             *     values are absent if the driver does not report them.
             */
            spoof_check?: boolean | null;
            /** @description True if the user may change the MAC address and receive frames addressed to others. */
            trust?: boolean | null;
            /**
             * Format: int64
             * @description Guaranteed transmit rate in bits per second; absent if none.
             */
            bandwidth_min_bps?: number | null;
            /**
             * Format: int64
             * @description Limit of the transmit rate in bits per second; absent if none.
             */
            bandwidth_max_bps?: number | null;
            link_state?: null | components["schemas"]["VfLinkState"];
        };
        VlanRangeText: number | string;
        /**
         * @description Execution of a VM's instructions.
         * @enum {string}
         */
        VmAccelerator: "auto" | "kvm" | "tcg";
        /** @description `[[vm]]`: a VM that the daemon starts. */
        VmConfig: {
            /** @description Name of the VM, unique among VMs. It cannot be changed. */
            name: components["schemas"]["Name"];
            /**
             * Format: int32
             * @description Number of virtual CPUs. A running VM gets more at once, up to `cpus_max`; fewer take effect at its next start.
             * @default 1
             */
            cpus?: number;
            /**
             * Format: int32
             * @description Largest number of virtual CPUs that `cpus` can be raised to while the VM runs; `cpus` if absent. A change takes effect when a VM starts.
             */
            cpus_max?: number | null;
            /** @description Memory of the guest in bytes, or with a unit, such as `"2 GiB"`. A change takes effect when a VM starts. */
            memory_bytes: number | string;
            /**
             * @description True if memory is allocated from huge pages, which must be reserved on the host. A change takes effect when a VM starts.
             * @default false
             */
            huge_pages?: boolean;
            /**
             * @description Firmware that boots the VM: `bios` (SeaBIOS) or `uefi` (OVMF). Not used with `kernel`. A change takes effect when a VM starts.
             * @default bios
             */
            firmware?: components["schemas"]["VmFirmware"];
            /** @description Absolute path of a Linux kernel that is booted directly, without firmware; the firmware boots the VM if absent. A change takes effect when a VM starts. */
            kernel?: string | null;
            /** @description Absolute path of the initramfs of `kernel`; none if absent. A change takes effect when a VM starts. */
            initrd?: string | null;
            /** @description Command line of `kernel`; empty if absent. `console=ttyS0` selects the serial console, which `suimon vm console` connects to. A change takes effect when a VM starts. */
            command_line?: string | null;
            /** @description NICs in the order of their PCI slots; none if absent. A NIC belongs to at most one VM, and needs no `socket` of its own then. */
            nics?: components["schemas"]["Name"][];
            /** @description Disks in boot order; none if absent. A disk belongs to at most one VM, and needs no `vhost_user` socket of its own then. */
            disks?: components["schemas"]["Name"][];
            /** @description Absolute path of the image in the CD drive; no CD drive if absent. A change takes effect when a VM starts. */
            cdrom?: string | null;
            /**
             * @description Execution of the guest: `kvm` (hardware virtualization), `tcg` (emulation by QEMU) or `auto` (`kvm` if this host supports it, else `tcg`). A change takes effect when a VM starts.
             * @default auto
             */
            accelerator?: components["schemas"]["VmAccelerator"];
            /**
             * @description True if the VM is started after each boot of the host, when its disks are in service. A host file that was changed before the boot is applied first. A VM that is added while the host runs, or by the first start of the daemon, is started from the next boot on.
             * @default false
             */
            autostart?: boolean;
        };
        /** @description Merge patch (RFC 7386) of `vm`: keys that are absent stay as they are, null removes a key. */
        VmConfigPatch: {
            /** @description Name of the VM, unique among VMs. It cannot be changed. */
            name?: components["schemas"]["Name"];
            /**
             * Format: int32
             * @description Number of virtual CPUs. A running VM gets more at once, up to `cpus_max`; fewer take effect at its next start.
             */
            cpus?: number | null;
            /**
             * Format: int32
             * @description Largest number of virtual CPUs that `cpus` can be raised to while the VM runs; `cpus` if absent. A change takes effect when a VM starts.
             */
            cpus_max?: number | null;
            /** @description Memory of the guest in bytes, or with a unit, such as `"2 GiB"`. A change takes effect when a VM starts. */
            memory_bytes?: number | string;
            /** @description True if memory is allocated from huge pages, which must be reserved on the host. A change takes effect when a VM starts. */
            huge_pages?: boolean | null;
            /** @description Firmware that boots the VM: `bios` (SeaBIOS) or `uefi` (OVMF). Not used with `kernel`. A change takes effect when a VM starts. */
            firmware?: null | components["schemas"]["VmFirmware"];
            /** @description Absolute path of a Linux kernel that is booted directly, without firmware; the firmware boots the VM if absent. A change takes effect when a VM starts. */
            kernel?: string | null;
            /** @description Absolute path of the initramfs of `kernel`; none if absent. A change takes effect when a VM starts. */
            initrd?: string | null;
            /** @description Command line of `kernel`; empty if absent. `console=ttyS0` selects the serial console, which `suimon vm console` connects to. A change takes effect when a VM starts. */
            command_line?: string | null;
            /** @description NICs in the order of their PCI slots; none if absent. A NIC belongs to at most one VM, and needs no `socket` of its own then. */
            nics?: components["schemas"]["Name"][] | null;
            /** @description Disks in boot order; none if absent. A disk belongs to at most one VM, and needs no `vhost_user` socket of its own then. */
            disks?: components["schemas"]["Name"][] | null;
            /** @description Absolute path of the image in the CD drive; no CD drive if absent. A change takes effect when a VM starts. */
            cdrom?: string | null;
            /** @description Execution of the guest: `kvm` (hardware virtualization), `tcg` (emulation by QEMU) or `auto` (`kvm` if this host supports it, else `tcg`). A change takes effect when a VM starts. */
            accelerator?: null | components["schemas"]["VmAccelerator"];
            /** @description True if the VM is started after each boot of the host, when its disks are in service. A host file that was changed before the boot is applied first. A VM that is added while the host runs, or by the first start of the daemon, is started from the next boot on. */
            autostart?: boolean | null;
        };
        /**
         * @description Firmware of a VM without a direct kernel boot.
         * @enum {string}
         */
        VmFirmware: "bios" | "uefi";
        /**
         * @description Response of `GET /1.0/vms/{name}/guest`: information from the guest agent, requested at the time
         *     of the response. The guest controls its content.
         */
        VmGuest: {
            /** @description Version of the guest agent. */
            agent_version?: string | null;
            /** @description Host name of the guest. */
            host_name?: string | null;
            /** @description Operating system, such as `Debian GNU/Linux 12 (bookworm)`. */
            system?: string | null;
            /** @description Kernel version, such as `6.1.0-28-amd64`. */
            kernel?: string | null;
            /** @description CPU architecture, such as `x86_64`. */
            machine?: string | null;
            /** @description Network interfaces of the guest. */
            interfaces: components["schemas"]["VmGuestInterface"][];
            /** @description True if the guest's file systems are frozen. Most agents report nothing else in this state. */
            frozen: boolean;
        };
        /** @description Network interface of a guest. */
        VmGuestInterface: {
            /** @description Name of the interface in the guest. */
            name: string;
            /** @description MAC address of the interface. */
            mac?: string | null;
            /** @description IP addresses with prefix lengths, such as `192.0.2.7/24`. */
            addresses: string[];
        };
        /** @description VM that migrates from or to this node. */
        VmMigration: {
            /** @description Id of the migration on both nodes. */
            id: string;
            /** @description True on the source node, false on the destination. */
            is_outgoing: boolean;
            /**
             * @description Name of the other node in this host's configuration; its host name if it is not configured
             *     here.
             */
            node: string;
            /** @description Phase, as far as known to this node. */
            phase: components["schemas"]["MigrationPhase"];
            /**
             * Format: int64
             * @description Bytes of disks copied, including repeated copies. 0 on the destination.
             */
            disk_bytes_copied: number;
            /**
             * Format: int64
             * @description Bytes of disks left to copy.
             */
            disk_bytes_left: number;
            /**
             * Format: int64
             * @description Bytes of memory sent, including repeated copies. 0 on the destination.
             */
            memory_bytes_copied: number;
            /**
             * Format: int64
             * @description Bytes of memory left to copy.
             */
            memory_bytes_left: number;
            /** @description Names of disks that are copied. */
            disks_copied?: components["schemas"]["Name"][];
            /** @description Disks that are handed over, because both nodes access their files in a shared store. */
            disks_handed_over?: components["schemas"]["Name"][];
            /**
             * @deprecated
             * @description Use `is_outgoing`. Version 0.3 removes this old name of it.
             */
            leaves?: boolean;
        };
        /**
         * @description State of a VM.
         *
         *     ```text
         *     stopped ──start──► starting ──► running ◄──resume──┐
         *        ▲                  │            │ ──pause──► paused
         *        │                  │            ├──stop──► stopping
         *        └──────────────────┴────────────┴── ended, by itself or by `kill`
         *
         *     Migration: running ──► handed over ──► gone (source); arriving ──► running (destination).
         *     ```
         * @enum {string}
         */
        VmState: "stopped" | "starting" | "running" | "paused" | "stopping" | "panicked" | "lost" | "arriving" | "handed-over";
        /** @description Observed state of a VM. */
        VmStatus: {
            /** @description Desired state of the VM. */
            config: components["schemas"]["VmConfig"];
            /** @description Current state of the VM. */
            state: components["schemas"]["VmState"];
            /** @description Reason why the VM ended or does not respond. */
            reason?: string | null;
            /** @description Settings that take effect at the VM's next start. */
            waits_for_start?: string[];
            /**
             * Format: int32
             * @description Process id of QEMU. This and the following values are absent while the VM is not running.
             */
            process?: number | null;
            /**
             * Format: int32
             * @description User id of the process.
             */
            user?: number | null;
            /**
             * Format: int64
             * @description Seconds since the VM's start.
             */
            uptime_s?: number | null;
            accelerator?: null | components["schemas"]["VmAccelerator"];
            /**
             * Format: int32
             * @description Current number of virtual CPUs.
             */
            cpus?: number | null;
            /** @description NICs attached to the VM. */
            nics?: components["schemas"]["Name"][];
            /** @description Disks attached to the VM. */
            disks?: components["schemas"]["Name"][];
            /** @description Version of the VM's QEMU. */
            qemu_version?: string | null;
            /** @description True if a guest agent is connected. */
            agent?: boolean | null;
            /**
             * Format: int64
             * @description Seconds until the guest's frozen file systems are thawed; 0 while thawing is attempted.
             *     Absent if they are not frozen.
             */
            frozen_s?: number | null;
            migration?: null | components["schemas"]["VmMigration"];
        };
        /**
         * @description `[team.vmq]` and `[uplink.vmq]`: assignment of queues to workers. Workers are numbered from 0 in
         *     the order of `[host] worker_cpus`.
         */
        VmqConfig: {
            /**
             * @description True if VMQ distributes the queues of the ports of the switch over workers. If false, the base worker (`base_worker`) services all of them.
             * @default true
             */
            enabled?: boolean;
            /**
             * @description Assignment of queues to workers: `static` (once, by `vmq_weight`) or `dynamic` (by load).
             * @default dynamic
             */
            mode?: components["schemas"]["VmqMode"];
            /**
             * Format: int32
             * @description Number of the lowest permitted worker, the base worker, which is used first; the lowest worker if absent.
             */
            base_worker?: number | null;
            /**
             * Format: int32
             * @description Largest number of workers used at the same time. It may exceed the number of existing workers.
             * @default 4
             */
            max_workers?: number;
            /**
             * Format: int32
             * @description Number of the highest permitted worker, not below `base_worker`; the highest worker if absent.
             */
            max_worker_number?: number | null;
            /**
             * Format: int32
             * @description NUMA node: only workers that are pinned to its CPUs (`worker_cpus`) are permitted; workers of any node if absent. Workers that are not pinned count as node 0.
             */
            numa_node?: number | null;
            /**
             * Format: int32
             * @deprecated
             * @description Use `base_worker`. Version 0.3 removes this old name of it.
             */
            base_processor?: number | null;
            /**
             * Format: int32
             * @deprecated
             * @description Use `max_workers`. Version 0.3 removes this old name of it.
             */
            max_processors?: number;
            /**
             * Format: int32
             * @deprecated
             * @description Use `max_worker_number`. Version 0.3 removes this old name of it.
             */
            max_processor_number?: number | null;
        };
        /** @description Merge patch (RFC 7386) of `vmq`: keys that are absent stay as they are, null removes a key. */
        VmqConfigPatch: {
            /** @description True if VMQ distributes the queues of the ports of the switch over workers. If false, the base worker (`base_worker`) services all of them. */
            enabled?: boolean | null;
            /** @description Assignment of queues to workers: `static` (once, by `vmq_weight`) or `dynamic` (by load). */
            mode?: null | components["schemas"]["VmqMode"];
            /**
             * Format: int32
             * @description Number of the lowest permitted worker, the base worker, which is used first; the lowest worker if absent.
             */
            base_worker?: number | null;
            /**
             * Format: int32
             * @description Largest number of workers used at the same time. It may exceed the number of existing workers.
             */
            max_workers?: number | null;
            /**
             * Format: int32
             * @description Number of the highest permitted worker, not below `base_worker`; the highest worker if absent.
             */
            max_worker_number?: number | null;
            /**
             * Format: int32
             * @description NUMA node: only workers that are pinned to its CPUs (`worker_cpus`) are permitted; workers of any node if absent. Workers that are not pinned count as node 0.
             */
            numa_node?: number | null;
            /**
             * Format: int32
             * @deprecated
             * @description Use `base_worker`. Version 0.3 removes this old name of it.
             */
            base_processor?: number | null;
            /**
             * Format: int32
             * @deprecated
             * @description Use `max_workers`. Version 0.3 removes this old name of it.
             */
            max_processors?: number | null;
            /**
             * Format: int32
             * @deprecated
             * @description Use `max_worker_number`. Version 0.3 removes this old name of it.
             */
            max_processor_number?: number | null;
        };
        /**
         * @description Method of assigning queues to workers.
         * @enum {string}
         */
        VmqMode: "static" | "dynamic";
        /** @description State of a worker in VMQ. Loads are parts per million of the worker's time. */
        VmqProcessorStatus: {
            /**
             * Format: int32
             * @description Number of the worker.
             */
            worker: number;
            /** @description True if the configuration permits the worker. */
            permitted: boolean;
            /**
             * Format: int32
             * @description Number of queues of this team or uplink assigned to the worker. Without queues, the worker
             *     is parked.
             */
            queues: number;
            /**
             * Format: int32
             * @description Total load of the worker.
             */
            load_ppm: number;
            /**
             * Format: int32
             * @description Load not caused by these queues.
             */
            other_load_ppm: number;
            /**
             * Format: int32
             * @deprecated
             * @description Use `worker`. Version 0.3 removes this old name of it.
             */
            processor?: number;
        };
        /** @description Queue and its assignment to a worker. */
        VmqQueueStatus: {
            /** @description Id of the queue, such as `web/rx/0`, as shown by `suimon queue list`. */
            queue: string;
            /** @description NIC or uplink that the queue belongs to. */
            nic: components["schemas"]["Name"];
            /** @description True if the queue is the default queue, because its NIC has `vmq_weight` 0. */
            default_queue: boolean;
            /**
             * Format: int32
             * @description Worker that services the queue.
             */
            worker: number;
            /**
             * Format: int32
             * @description Load that the queue causes, in parts per million of its worker's time.
             */
            load_ppm: number;
            /**
             * Format: int64
             * @description Seconds since the queue was assigned to the worker.
             */
            age_s: number;
            /** @description Reason for the assignment to this worker. */
            reason: string;
            /**
             * @description Reason why VMQ does not move the queue now, with the remaining time if a later move is
             *     possible.
             */
            stay_reason: string;
            /**
             * Format: int32
             * @deprecated
             * @description Use `worker`. Version 0.3 removes this old name of it.
             */
            processor?: number;
            /**
             * @deprecated
             * @description Use `reason`. Version 0.3 removes this old name of it.
             */
            why?: string;
            /**
             * @deprecated
             * @description Use `stay_reason`. Version 0.3 removes this old name of it.
             */
            stays?: string;
        };
        /** @description Observed state of VMQ of a team or uplink. */
        VmqStatus: {
            /** @description Name of the team or uplink. */
            uplink: components["schemas"]["Name"];
            /** @description Desired state of VMQ. */
            config: components["schemas"]["VmqConfig"];
            /** @description State of workers, by number. */
            workers: components["schemas"]["VmqProcessorStatus"][];
            /** @description Queues, by NIC, direction and number. */
            queues: components["schemas"]["VmqQueueStatus"][];
            /**
             * @deprecated
             * @description Use `workers`. Version 0.3 removes this old name of it.
             */
            processors?: components["schemas"]["VmqProcessorStatus"][];
        };
        /** @description Response of `POST /1.0/qos/what-if`. */
        WhatIfAnswer: {
            /** @description True if the reservations fit on every store. */
            fits: boolean;
            /** @description Stores concerned by the proposals, by name. */
            stores: components["schemas"]["StorePromises"][];
            /** @description Warnings about the request, such as the use of an old name. */
            warnings?: string[];
        };
        /** @description Body of `POST /1.0/qos/what-if`: proposals, applied in order. */
        WhatIfRequest: {
            /** @description Proposals, 1 to 256. */
            proposals: components["schemas"]["QosProposal"][];
        };
        /**
         * @description Hook at which XDP receives frames.
         * @enum {string}
         */
        XdpHook: "driver" | "generic";
        /** @description Operation of an uplink's AF_XDP sockets. */
        XdpStatus: {
            /** @description Hook of the XDP program. */
            hook: components["schemas"]["XdpHook"];
            /**
             * @description True if the device accesses the sockets' memory directly. Otherwise the kernel copies
             *     frames.
             */
            zero_copy: boolean;
            /** @description True if frames may span several chunks, which the MTU requires. */
            multi_buffer: boolean;
            /**
             * Format: int32
             * @description Size of a chunk in bytes.
             */
            chunk_bytes: number;
            /**
             * Format: int64
             * @description Received frames lost for lack of space in a socket, since the uplink was opened.
             */
            lost_frames: number;
        };
    };
    responses: {
        /** @description The body of the request was not received within 10 s. */
        BodyTimeout: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        /** @description The body of the request is larger than 4 MiB. */
        BodyTooLarge: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        /** @description The object exists already or is in use, or its present state does not permit the request. Codes: `duplicate_name`, `conflict`, `already_exists`, `in_use`, `device_busy`, `cancelled`. */
        Conflict: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        /** @description The token permits reading metrics only (only over TCP), or the host denies the daemon a permission that the request needs. Codes: `permission_denied`. */
        Forbidden: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        /** @description An error of the host or of the daemon prevented the request. Codes: `host_error`, `internal`. */
        HostError: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        /** @description The body is not JSON, or a value has the wrong type. Codes: `malformed`. */
        Malformed: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        /** @description No object has the name or number in the path. Codes: `not_found`. */
        NotFound: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        /** @description The bearer token is missing or wrong. Only over TCP: the Unix socket requires none. The response to a wrong token is delayed by 0.25 to 10 s, and its connection is closed. Codes: `unauthorized`. */
        Unauthorized: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        /** @description A key or parameter is unknown or missing, a value is out of its range, or a rule is violated that JSON Schema cannot express, such as a reference to a missing resource. Codes: `unknown_key`, `invalid_value`, `missing_key`, `key_not_applicable`, `overlapping_vlans`, `unknown_reference`, `overcommitted`, `device_missing`, `unreachable`, `unsupported`. */
        Unprocessable: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        /** @description The header `Upgrade` does not name the protocol of this operation. */
        UpgradeRequired: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    show_host: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HostStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    apply_host: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ApplyRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    prepare_arrival: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ArrivalRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_arrival: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Arrival"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    abandon_arrival: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Arrival"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    activate_arrival: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Arrival"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    connect_arrival_disk: {
        parameters: {
            query?: never;
            header: {
                /** @description Protocol of the connection. */
                Upgrade: string;
            };
            path: {
                id: string;
                disk: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The connection carries the protocol that `Upgrade` names. */
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            426: components["responses"]["UpgradeRequired"];
            500: components["responses"]["HostError"];
        };
    };
    connect_arrival_memory: {
        parameters: {
            query?: never;
            header: {
                /** @description Protocol of the connection. */
                Upgrade: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The connection carries the protocol that `Upgrade` names. */
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            426: components["responses"]["UpgradeRequired"];
            500: components["responses"]["HostError"];
        };
    };
    show_cluster: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClusterStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    replace_cluster: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "endpoints": [
                 *         "https://192.0.2.10:2379"
                 *       ],
                 *       "name": "lab",
                 *       "node": "node1"
                 *     }
                 */
                "application/json": components["schemas"]["ClusterConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    init_cluster: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "endpoints": [
                 *         "https://192.0.2.10:2379"
                 *       ],
                 *       "name": "lab",
                 *       "node": "node1"
                 *     }
                 */
                "application/json": components["schemas"]["ClusterConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    leave_cluster: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_cluster: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["ClusterConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_cluster_flows: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClusterDisk"][];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    remove_cluster_node: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the node in the cluster. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    export_config: {
        parameters: {
            query?: {
                /** @description Format of the response, `json` or `toml`; `json` if absent. */
                format?: "json" | "toml";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HostConfig"];
                    "application/toml": string;
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    create_console_login: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConsoleLogin"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_disks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DiskStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    add_disk: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "format": "raw",
                 *       "name": "web",
                 *       "store": "ssd"
                 *     }
                 */
                "application/json": components["schemas"]["DiskConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_disk: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DiskStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    replace_disk: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "format": "raw",
                 *       "name": "web",
                 *       "store": "ssd"
                 *     }
                 */
                "application/json": components["schemas"]["DiskConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    delete_disk: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_disk: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["DiskConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    check_disk: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    compact_disk: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    convert_disk: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ConvertDiskRequest"];
            };
        };
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    merge_disk: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    reopen_disk: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    snapshot_disk: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SnapshotDiskRequest"];
            };
        };
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_events: {
        parameters: {
            query?: {
                /** @description Return only events after this sequence number; the latest events if absent. */
                after?: number;
                /** @description Largest number of events, 1 to 10 000; 100 if absent. */
                limit?: number;
                /** @description Return only events of at least this severity; all if absent. */
                severity?: "info" | "warning" | "error";
                /**
                 * @description Return only events about this subject, such as `disk/web`, or about this kind of subject,
                 *     such as `disk`.
                 */
                subject?: string;
                /** @description Return only events with this event id, such as 6108. */
                id?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Event"][];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    follow_events: {
        parameters: {
            query?: {
                /** @description Begin after this sequence number, with stored events; with the next new event if absent. */
                after?: number;
                /** @description Return only events of at least this severity; all if absent. */
                severity?: "info" | "warning" | "error";
                /**
                 * @description Return only events about this subject, such as `disk/web`, or about this kind of subject,
                 *     such as `disk`.
                 */
                subject?: string;
                /** @description Return only events with this event id, such as 6108. */
                id?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": components["schemas"]["Event"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_lab: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LabStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    compare_lab_runs: {
        parameters: {
            query: {
                /** @description Id of a run. */
                a: string;
                /** @description Id of the run to compare with. */
                b: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LabComparison"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    withdraw_lab_request: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LabRequest"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    list_lab_runs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LabRun"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    request_lab_run: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LabRunRequest"];
            };
        };
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LabRequest"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_lab_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LabRunDetails"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    show_lab_report: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    list_nics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NicStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    add_nic: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "backend": "tap",
                 *       "name": "web",
                 *       "switch": "lan"
                 *     }
                 */
                "application/json": components["schemas"]["NicConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_nic: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NicStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    replace_nic: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "backend": "tap",
                 *       "name": "web",
                 *       "switch": "lan"
                 *     }
                 */
                "application/json": components["schemas"]["NicConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    delete_nic: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_nic: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["NicConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    capture_nic: {
        parameters: {
            query?: {
                /** @description Bytes captured of each frame; whole frames if absent or 0. */
                snaplen?: number;
                /** @description Number of frames after which the capture ends; no limit if absent. */
                max_frames?: number;
                /** @description Number of bytes of frames after which the capture ends; no limit if absent. */
                max_bytes?: number;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "suimon-operation"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/x-pcapng": number[];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_nodes: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    add_node: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "address": "node2.example.net:8443",
                 *       "ca_certificate": "/etc/suimon/ca.pem",
                 *       "name": "node2",
                 *       "token_file": "/etc/suimon/node2.token"
                 *     }
                 */
                "application/json": components["schemas"]["NodeConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_node: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    replace_node: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "address": "node2.example.net:8443",
                 *       "ca_certificate": "/etc/suimon/ca.pem",
                 *       "name": "node2",
                 *       "token_file": "/etc/suimon/node2.token"
                 *     }
                 */
                "application/json": components["schemas"]["NodeConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    delete_node: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_node: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["NodeConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    drain_node: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
            };
            header?: never;
            path: {
                /** @description Host name of this host, or name of a `[[node]]`. */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DrainRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DrainPlan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    undrain_node: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Host name of this host, or name of a `[[node]]`. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_openapi: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    list_operations: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    show_operation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    cancel_operation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    follow_operation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": components["schemas"]["Operation"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    wait_operation: {
        parameters: {
            query?: {
                /** @description Time limit in seconds, 0 to 3600; 30 if absent. */
                timeout_s?: number;
            };
            header?: never;
            path: {
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_pfs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PfStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    add_pf: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "device": "eth0",
                 *       "name": "port0"
                 *     }
                 */
                "application/json": components["schemas"]["PfConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_pf: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PfStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    replace_pf: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "device": "eth0",
                 *       "name": "port0"
                 *     }
                 */
                "application/json": components["schemas"]["PfConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    delete_pf: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_pf: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["PfConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_power: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PowerStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    replace_power: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "plan": "balanced"
                 *     }
                 */
                "application/json": components["schemas"]["PowerConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    delete_power: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_power: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["PowerConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_processors: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProcessorStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    list_qos_policies: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QosPolicyStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    add_qos_policy: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "gold"
                 *     }
                 */
                "application/json": components["schemas"]["QosPolicyConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_qos_policy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QosPolicyStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    replace_qos_policy: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "gold"
                 *     }
                 */
                "application/json": components["schemas"]["QosPolicyConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    delete_qos_policy: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_qos_policy: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["QosPolicyConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_qos_flows: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QosFlowStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    forecast_qos: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WhatIfRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WhatIfAnswer"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_queues: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QueueStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    move_queue: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the NIC or uplink, or of the switch for its host NIC. */
                port: string;
                /** @description Direction. For a NIC, `rx` carries frames to the guest; for an uplink, `rx` carries frames from the network. */
                side: string;
                index: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MoveQueueRequest"];
            };
        };
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_sriov: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SriovAdapter"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    show_sriov: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description PCI address or network device of the adapter, or name of its `[[pf]]`. */
                adapter: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SriovAdapter"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    list_stores: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoreStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    add_store: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "ssd",
                 *       "path": "/srv/ssd"
                 *     }
                 */
                "application/json": components["schemas"]["StoreConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_store: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoreStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    replace_store: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "ssd",
                 *       "path": "/srv/ssd"
                 *     }
                 */
                "application/json": components["schemas"]["StoreConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    delete_store: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_store: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["StoreConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    check_image: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ImageRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImageCheck"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    inspect_image: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ImageRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImageInfo"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    relink_image: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ImageRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImageChanges"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    repair_image: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ImageRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImageChanges"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    measure_store: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["MeasureStoreRequest"];
            };
        };
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_switches: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SwitchStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    add_switch: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "kind": "private",
                 *       "name": "lan"
                 *     }
                 */
                "application/json": components["schemas"]["SwitchConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_switch: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SwitchStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    replace_switch: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "kind": "private",
                 *       "name": "lan"
                 *     }
                 */
                "application/json": components["schemas"]["SwitchConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    delete_switch: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_switch: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["SwitchConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_addresses: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AddressStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    list_teams: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TeamStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    add_team: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "members": [
                 *         "left",
                 *         "right"
                 *       ],
                 *       "mode": "static",
                 *       "name": "both"
                 *     }
                 */
                "application/json": components["schemas"]["TeamConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_team: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TeamStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    replace_team: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "members": [
                 *         "left",
                 *         "right"
                 *       ],
                 *       "mode": "static",
                 *       "name": "both"
                 *     }
                 */
                "application/json": components["schemas"]["TeamConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    delete_team: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_team: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["TeamConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_top: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TopSnapshot"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    list_uplinks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UplinkStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    add_uplink: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "device": "eth0",
                 *       "name": "left"
                 *     }
                 */
                "application/json": components["schemas"]["UplinkConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_uplink: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UplinkStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    replace_uplink: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "device": "eth0",
                 *       "name": "left"
                 *     }
                 */
                "application/json": components["schemas"]["UplinkConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    delete_uplink: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_uplink: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["UplinkConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    capture_uplink: {
        parameters: {
            query?: {
                /** @description Bytes captured of each frame; whole frames if absent or 0. */
                snaplen?: number;
                /** @description Number of frames after which the capture ends; no limit if absent. */
                max_frames?: number;
                /** @description Number of bytes of frames after which the capture ends; no limit if absent. */
                max_bytes?: number;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "suimon-operation"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/x-pcapng": number[];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_vmq: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VmqStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    show_vmq: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the uplink or team. */
                uplink: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VmqStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    list_vms: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VmStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    add_vm: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "memory_bytes": 1073741824,
                 *       "name": "web"
                 *     }
                 */
                "application/json": components["schemas"]["VmConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_vm: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VmStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    replace_vm: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "memory_bytes": 1073741824,
                 *       "name": "web"
                 *     }
                 */
                "application/json": components["schemas"]["VmConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    delete_vm: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_vm: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
                /**
                 * @description True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
                 *     join if etcd does not respond, and to leave if it does not respond or if disks are on shared
                 *     stores. For `/1.0/stores`: also to end `shared` of a store with disks.
                 */
                force?: boolean;
                /** @description True to delete the image files of disks that the change deletes, with their data. */
                with_file?: boolean;
                /**
                 * @description For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
                 *     has had an image. An existing file is opened and not changed.
                 */
                create_image?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the object. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["VmConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    connect_vm_console: {
        parameters: {
            query?: never;
            header: {
                /** @description Protocol of the connection. */
                Upgrade: string;
            };
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The connection carries the protocol that `Upgrade` names. */
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            426: components["responses"]["UpgradeRequired"];
            500: components["responses"]["HostError"];
        };
    };
    freeze_vm: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["FreezeVmRequest"];
            };
        };
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_vm_guest: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VmGuest"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    kill_vm: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_vm_libvirt: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/xml": string;
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    migrate_vm: {
        parameters: {
            query?: {
                /** @description True to return the planned steps with status 200 and change nothing. */
                dry_run?: boolean;
            };
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MigrateVmRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    pause_vm: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    reset_vm: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    resume_vm: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    start_vm: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    stop_vm: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["StopVmRequest"];
            };
        };
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    thaw_vm: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_workers: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProcessorStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["HostError"];
        };
    };
    show_metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
}
