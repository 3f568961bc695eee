/** Pages in the order of the navigation. */
import type { Key } from "../texts/texts";

export interface NavigationGroup {
  title: Key;
  pages: { path: string; title: Key }[];
}

export const NAVIGATION: readonly NavigationGroup[] = [
  {
    title: "nav.group.host",
    pages: [
      { path: "overview", title: "nav.overview" },
      { path: "vms", title: "nav.vms" },
      { path: "why", title: "nav.why" },
      { path: "events", title: "nav.events" },
    ],
  },
  {
    title: "nav.group.storage",
    pages: [
      { path: "disks", title: "nav.disks" },
      { path: "cluster", title: "nav.cluster" },
    ],
  },
  {
    title: "nav.group.network",
    pages: [
      { path: "network", title: "nav.network" },
      { path: "vmq", title: "nav.vmq" },
      { path: "offload", title: "nav.offload" },
      { path: "sriov", title: "nav.sriov" },
    ],
  },
  { title: "nav.group.cpu", pages: [{ path: "power", title: "nav.power" }] },
  { title: "nav.group.lab", pages: [{ path: "lab", title: "nav.lab" }] },
];
