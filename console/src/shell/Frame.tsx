/** What is around every page: the host's name, navigation, and what the user chose of the page. */
import {
  Masthead, MastheadBrand, MastheadContent, MastheadMain, MastheadToggle, Nav, NavGroup, NavItem, Page, PageSidebar,
  PageSidebarBody, PageToggleButton, SkipToContent, Toolbar, ToolbarContent, ToolbarItem,
} from "@patternfly/react-core";
import BarsIcon from "@patternfly/react-icons/dist/esm/icons/bars-icon";
import { useEffect, useState, type ReactNode } from "react";
import type { Session } from "../api/session";
import { useTexts } from "../texts/texts";
import { Toasts } from "../parts/toasts";
import { LineBanner } from "./LineBanner";
import { Logo } from "./Logo";
import { NAVIGATION } from "./navigation";
import { UserMenu } from "./UserMenu";
import { link } from "./router";

/** Narrower than this, the navigation lies over the page. */
const NARROW = "(max-width: 1199px)";

export function Frame(props: { session: Session; at: string; onLogOut: () => void; children: ReactNode }) {
  const { t } = useTexts();
  const [open, setOpen] = useState(() => !window.matchMedia(NARROW).matches);
  useEffect(() => {
    const narrow = window.matchMedia(NARROW);
    const change = () => setOpen(!narrow.matches);
    narrow.addEventListener("change", change);
    return () => narrow.removeEventListener("change", change);
  }, []);
  const chosen = () => {
    if (window.matchMedia(NARROW).matches) setOpen(false);
  };

  const masthead = (
    <Masthead display={{ default: "inline" }}>
      <MastheadMain>
        <MastheadToggle>
          <PageToggleButton
            variant="plain"
            aria-label={t("nav.toggle")}
            isSidebarOpen={open}
            onSidebarToggle={() => setOpen(!open)}
            id="nav-toggle"
          >
            <BarsIcon />
          </PageToggleButton>
        </MastheadToggle>
        <MastheadBrand>
          <a className="brand" href={link("overview")}>
            <Logo />
            <span>Suimon</span>
          </a>
        </MastheadBrand>
      </MastheadMain>
      <MastheadContent>
        <Toolbar isStatic>
          <ToolbarContent>
            <ToolbarItem className="host-name">{props.session.host_name}</ToolbarItem>
            <ToolbarItem align={{ default: "alignEnd" }}>
              <UserMenu session={props.session} onLogOut={props.onLogOut} />
            </ToolbarItem>
          </ToolbarContent>
        </Toolbar>
      </MastheadContent>
    </Masthead>
  );

  const sidebar = (
    <PageSidebar isSidebarOpen={open}>
      <PageSidebarBody>
        <Nav aria-label={t("nav.label")} onSelect={chosen}>
          {NAVIGATION.map((group) => (
            <NavGroup key={group.title} title={t(group.title)}>
              {group.pages.map((page) => (
                <NavItem key={page.path} itemId={page.path} to={link(page.path)} isActive={props.at === page.path}>
                  {t(page.title)}
                </NavItem>
              ))}
            </NavGroup>
          ))}
        </Nav>
      </PageSidebarBody>
    </PageSidebar>
  );

  const skip = (
    <SkipToContent
      href="#main"
      onClick={(event) => {
        event.preventDefault();
        document.getElementById("main")?.focus();
      }}
    >
      {t("nav.skip")}
    </SkipToContent>
  );

  return (
    <Page masthead={masthead} sidebar={sidebar} skipToContent={skip} mainContainerId="main" isContentFilled>
      <LineBanner />
      {props.children}
      <Toasts />
    </Page>
  );
}
