/** The page at an address. */
import { Button } from "@patternfly/react-core";
import { Component, type ComponentType, type ReactNode } from "react";
import { Empty, Errors } from "../parts/States";
import { ClusterPage } from "../pages/cluster/ClusterPage";
import { DiskPage } from "../pages/disks/DiskPage";
import { DisksPage } from "../pages/disks/DisksPage";
import { EventsPage } from "../pages/events/EventsPage";
import { LabPage } from "../pages/lab/LabPage";
import { LabRunPage } from "../pages/lab/LabRunPage";
import { NetworkPage } from "../pages/network/NetworkPage";
import { OffloadPage } from "../pages/offload/OffloadPage";
import { OverviewPage } from "../pages/overview/OverviewPage";
import { PowerPage } from "../pages/power/PowerPage";
import { SriovPage } from "../pages/sriov/SriovPage";
import { TeamPage } from "../pages/network/TeamPage";
import { VmPage } from "../pages/vms/VmPage";
import { VmqPage } from "../pages/vmq/VmqPage";
import { VmsPage } from "../pages/vms/VmsPage";
import { WhyPage } from "../pages/why/WhyPage";
import { useTexts } from "../texts/texts";
import { link } from "./router";

export interface PageProps {
  /** What follows the page's own name in the address, such as a VM's. */
  name?: string;
  query: URLSearchParams;
}

const LISTS: Record<string, ComponentType<PageProps>> = {
  overview: OverviewPage,
  disks: DisksPage,
  vmq: VmqPage,
  network: NetworkPage,
  events: EventsPage,
  vms: VmsPage,
  why: WhyPage,
  offload: OffloadPage,
  power: PowerPage,
  sriov: SriovPage,
  cluster: ClusterPage,
  lab: LabPage,
};

/** Pages of one thing. */
const SINGLE: Record<string, ComponentType<PageProps & { name: string }>> = {
  disks: DiskPage,
  vms: VmPage,
  teams: TeamPage,
  lab: LabRunPage,
};

export function PageAt(props: { path: string[]; query: URLSearchParams }) {
  const [first = "overview", name] = props.path;
  const Single = name === undefined ? undefined : SINGLE[first];
  const List = LISTS[first];
  return (
    <Boundary key={`${first}/${name ?? ""}`}>
      {Single && name !== undefined ? (
        <Single name={name} query={props.query} />
      ) : List ? (
        <List name={name} query={props.query} />
      ) : (
        <NoPage />
      )}
    </Boundary>
  );
}

function NoPage() {
  const { t } = useTexts();
  return (
    <Empty title={t("nopage.title")}>
      <Button component="a" href={link("overview")} variant="link">{t("nav.overview")}</Button>
    </Empty>
  );
}

/** A page that fails says so, and the others go on. */
class Boundary extends Component<{ children: ReactNode }, { error?: unknown }> {
  override state: { error?: unknown } = {};

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    return this.state.error === undefined ? this.props.children : <Errors error={this.state.error} />;
  }
}
