// An OpenID Connect provider for tests: oidc-provider. The user is whoever `login_hint` names, without being asked; without
// one, it is ana, once she has followed a link. Roles are written in the name: `ana+operador+auditor` is ana with two.
import { generateKeyPairSync } from 'node:crypto';
import { Provider } from 'oidc-provider';

const [, , port, redirectUri] = process.argv;
const issuer = `http://127.0.0.1:${port}`;
const rolesOf = (account) => account.split('+').slice(1);
const signingKey = (kid, alg, type, options) => ({
  ...generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' }), kid, alg, use: 'sig',
});

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: 'oraculo', client_secret: 'um-segredo-de-teste-bem-comprido', redirect_uris: [redirectUri],
      grant_types: ['authorization_code'], response_types: ['code'], token_endpoint_auth_method: 'client_secret_basic',
    },
    {
      client_id: 'publico', redirect_uris: ['http://127.0.0.1/volta'], application_type: 'native',
      grant_types: ['authorization_code'], response_types: ['code'], token_endpoint_auth_method: 'none',
    },
  ],
  pkce: { required: () => true },
  jwks: {
    keys: [
      signingKey('rsa', 'RS256', 'rsa', { modulusLength: 2048 }),
      signingKey('curve', 'ES256', 'ec', { namedCurve: 'P-256' }),
    ],
  },
  cookies: { keys: ['only for tests'] },
  findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  features: {
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => 'urn:oraculo',
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        audience: 'oraculo', scope: 'api', accessTokenFormat: 'jwt', accessTokenTTL: 600, jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
  extraTokenClaims: (_ctx, token) => (token.accountId ? { roles: rolesOf(token.accountId) } : {}),
  interactions: { url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
});

provider.use(async (ctx, next) => {
  if (!ctx.path.startsWith('/interaction/')) return next();
  const { params, session } = await provider.interactionDetails(ctx.req, ctx.res);
  if (!params.login_hint && !('go' in ctx.query)) {
    ctx.type = 'html';
    ctx.body = '<!doctype html><title>Provider</title><a href="?go">Sign in as ana</a>';
    return undefined;
  }
  const accountId = params.login_hint || session?.accountId || 'ana+operador';
  const grant = new provider.Grant({ accountId, clientId: params.client_id });
  grant.addOIDCScope('openid');
  grant.addResourceScope('urn:oraculo', 'api');
  await provider.interactionFinished(ctx.req, ctx.res, {
    login: { accountId }, consent: { grantId: await grant.save() },
  });
  ctx.respond = false;
});

provider.listen(Number(port), '127.0.0.1');
