// Vendure: an order of so many lines by its services, with one promotion, stored in SQLite. Run in its own folder.
import { createRequire } from "node:module";
import { join } from "node:path";
import process from "node:process";

const [packages, folder, given] = process.argv.slice(2);
const require = createRequire(join(packages, "package.json"));
const core = require("@vendure/core");
const PRODUCTS = 100;

const config = {
  apiOptions: { port: 0, adminApiPath: "admin-api", shopApiPath: "shop-api" },
  authOptions: { superadminCredentials: { identifier: "admin", password: "admin" }, cookieOptions: { secret: "bench" } },
  dbConnectionOptions: { type: "better-sqlite3", database: join(folder, "vendure.sqlite"), synchronize: true },
  paymentOptions: { paymentMethodHandlers: [] },
  orderOptions: { orderItemsLimit: 100000, orderLineItemsLimit: 100000 },
  logger: new core.DefaultLogger({ level: core.LogLevel.Error }),
  plugins: [],
};

async function fill(app) {
  const get = (service) => app.get(service);
  const english = { languageCode: core.LanguageCode.en };
  const ctx = await get(core.RequestContextService).create({ apiType: "admin" });
  const zone = await get(core.ZoneService).create(ctx, { name: "Everywhere", memberIds: [] });
  const category = await get(core.TaxCategoryService).create(ctx, { name: "standard", isDefault: true });
  await get(core.TaxRateService).create(ctx, {
    name: "standard", enabled: true, value: 20, categoryId: category.id, zoneId: zone.id,
  });
  const channel = await get(core.ChannelService).getDefaultChannel(ctx);
  const zones = { defaultTaxZoneId: zone.id, defaultShippingZoneId: zone.id };
  await get(core.ChannelService).update(ctx, { id: channel.id, ...zones });
  const fresh = await get(core.RequestContextService).create({ apiType: "admin" });
  const ids = [];
  for (let n = 0; n < PRODUCTS; n++) {
    const product = await get(core.ProductService).create(fresh, {
      enabled: true, translations: [{ ...english, name: `P${n}`, slug: `p-${n}`, description: "" }],
    });
    const [variant] = await get(core.ProductVariantService).create(fresh, [{
      productId: product.id, sku: `P${n}`, price: 1000 + n, taxCategoryId: category.id, optionIds: [],
      stockOnHand: 1_000_000, trackInventory: "FALSE", translations: [{ ...english, name: `P${n}` }],
    }]);
    ids.push(variant.id);
  }
  await get(core.PromotionService).createPromotion(fresh, {
    enabled: true,
    conditions: [{ code: "minimum_order_amount", arguments: [
      { name: "amount", value: "100" }, { name: "taxInclusive", value: "false" },
    ] }],
    actions: [{ code: "order_percentage_discount", arguments: [{ name: "discount", value: "5" }] }],
    translations: [{ ...english, name: "five", description: "" }],
  });
  return ids;
}

async function order(app, variants, count) {
  const ctx = await app.get(core.RequestContextService).create({ apiType: "shop" });
  const made = await app.get(core.OrderService).create(ctx);
  const lines = Array.from({ length: count }, (_, n) => (
    { productVariantId: variants[n % PRODUCTS], quantity: (n % 9) + 1, customFields: undefined }
  ));
  const result = await app.get(core.OrderService).addItemsToOrder(ctx, made.id, lines);
  if (result.errorResults?.length) throw new Error(JSON.stringify(result.errorResults[0]));
}

const app = await core.bootstrap(config);
const variants = await fill(app);
const once = async (count) => {
  const before = process.cpuUsage();
  await order(app, variants, count);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
};
await once(1);
await once(10);
const found = {};
for (const [count, rounds] of JSON.parse(given)) {
  found[count] = Infinity;
  for (let round = 0; round < rounds; round++) found[count] = Math.min(found[count], await once(count));
}
process.stdout.write(`${JSON.stringify(found)}\n`);
process.exit(0);
