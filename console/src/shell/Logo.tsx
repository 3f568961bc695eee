/** Logo: a sluice gate over water. */
export function Logo() {
  return (
    <svg className="logo" viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
      <path className="logo-gate" d="M2 3h28v4H2zM4 8h4v21H4zM24 8h4v21h-4zM10 8h12v9H10z" />
      <path className="logo-water" d="M10 21q3-3 6 0t6 0v3q-3 3-6 0t-6 0zM10 26q3-3 6 0t6 0v3q-3 3-6 0t-6 0z" />
    </svg>
  );
}
