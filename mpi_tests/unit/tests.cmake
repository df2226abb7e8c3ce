lade_unit(unpack ROOMS kernels)
lade_unit(box ROOMS plan)
lade_unit(plan ROOMS plan)
