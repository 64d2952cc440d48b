/**
 * Which functions a query may call. Analysts use hundreds of PostgreSQL's functions, so this is a rule with exceptions
 * and not a list of what is allowed: a function that comes with PostgreSQL is ordinary when it only computes.
 */

interface Refused {
  readonly names: RegExp;
  readonly why: string;
}

const REACHES_OUT = "reaches beyond the query, into the server or other sessions";
const EXECUTES_TEXT = "executes a text as SQL";
const CHANGES = "gives another answer every time, so a read could neither be repeated nor continued";
const CATALOGUE = "looks into the catalogue of the database";

/** These match a pattern that is refused below, but only compute. */
const HARMLESS = /^pg_(typeof|column_size|size_pretty|collation_for)$/;

/** By name, because PostgreSQL calls some of these stable, or even immutable. */
const REFUSED: readonly Refused[] = [
  { names: /^(random|random_normal|setseed|gen_random_uuid|uuidv[47]|array_sample|array_shuffle)$/, why: CHANGES },
  { names: /^(clock_timestamp|timeofday)$/, why: `${CHANGES}; use now()` },
  { names: /^(nextval|setval|currval|lastval)$/, why: "uses a sequence, which a reader has no business with" },
  { names: /^(set_config|current_setting)$/, why: "reads or changes settings of the session" },
  { names: /_to_xml(schema|_and_xmlschema)?$|^ts_(stat|rewrite)$|^(dblink|crosstab|connectby)/, why: EXECUTES_TEXT },
  { names: /xml|^xpath/, why: "works on XML, which queries may not use" },
  { names: /^(pg_|lo_|loread$|lowrite$|txid_|binary_upgrade_|inet_(client|server)_|currtid)/, why: REACHES_OUT },
  { names: /^(current_query|satisfies_hash_partition|row_security_active|amvalidate)$|_validator$/, why: REACHES_OUT },
  {
    names:
      /^has_\w+_privilege$|^(acl|makeaclitem$)|^to_reg|(^|_)(col|obj|shobj)_description$|^(format_type|oidvectortypes)$/,
    why: CATALOGUE,
  },
];

/** Why no PostgreSQL function of this name may be called, whatever its arguments. */
export function refusedByName(name: string): string | undefined {
  if (HARMLESS.test(name)) return undefined;
  return REFUSED.find(({ names }) => names.test(name))?.why;
}

/** What the catalogue says about a function. */
export interface FunctionFacts {
  readonly name: string;
  /** It came with PostgreSQL itself: nobody added it later. */
  readonly builtIn: boolean;
  readonly volatility: "i" | "s" | "v";
  /** Arguments and results. */
  readonly types: readonly string[];
}

/** Texts of these types name objects, are parsed by libraries, or go straight into PostgreSQL's internals. */
const REFUSED_TYPES = /^_?(reg(?!config$|dictionary$)\w+|xml|refcursor|cstring|internal|aclitem|pg_\w+|txid_snapshot)$/;

export const OF_OWN_MAKING = "is not one of PostgreSQL's own functions; what it does cannot be known from outside";

/** Why this particular function may not be called. */
export function refusedByFacts({ name, builtIn, volatility, types }: FunctionFacts): string | undefined {
  if (!builtIn) return OF_OWN_MAKING;
  if (HARMLESS.test(name)) return undefined;
  const byName = refusedByName(name);
  if (byName !== undefined) return byName;
  if (volatility === "v") return "is volatile: it may change something, or answer differently every time";
  const type = types.find((candidate) => REFUSED_TYPES.test(candidate));
  return type === undefined ? undefined : `works on values of the internal type ${type}`;
}
