/** The name of no rule: logs and metrics use it for requests without a rule or an endpoint. */
export const unmatched = 'unmatched';
